"""The code on the how-to pages of the testing tools and of transports runs from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("test-with-wire-server", []),
        (
            "write-a-transport",
            [
                "Hello",
                "good must give it and did: message_stop",
                "byte-by-byte must give the same answer as ever and did: message_stop",
                "rate-limited-once must wait and repeat and did: message_stop",
                "refused must raise ConnectionFailedError after three attempts and did: failed",
            ],
        ),
    ],
)
def test_page(page: str, said: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {"__name__": page.replace("-", "_")}
    for number, code in enumerate(
        re.findall(r"^```python\n(.*?)^```", (HOW_TO / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    ):
        exec(compile(code, f"{page}#{number}", "exec"), names)
    assert capsys.readouterr().out.splitlines() == said
