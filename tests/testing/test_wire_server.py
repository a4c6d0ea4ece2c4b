from __future__ import annotations

import httpx2

from dragoman.testing import Answer, WireServer, anthropic_stream


def test_serves_one_answer_per_request_and_records_the_requests() -> None:
    with WireServer([Answer(body={"a": 1}), anthropic_stream("Hello")]) as server, httpx2.Client(trust_env=False) as client:
        first = client.post(server.url + "/v1/messages", json={"q": 1}, headers={"X-Api-Key": "k"})
        second = client.post(server.url + "/v1/messages", content=b"{}")
        third = client.get(server.url + "/more")
        assert first.json() == {"a": 1}
        assert second.text.startswith("event: message_start\n")
        assert third.status_code == 400
        assert [request.json() for request in server.requests[:2]] == [{"q": 1}, {}]
        assert server.requests[0].header("x-api-key") == "k"
        assert [request.connection for request in server.requests] == [0, 0, 0]
    server.wait_closed()
