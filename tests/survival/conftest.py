"""Bad days happen over either transport."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from . import calls


@pytest.fixture(params=["httpx2", "direct"])
def each_transport(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every call of the test goes over this transport; the direct one knows no trio."""
    marks = getattr(request.node, "callspec", None)
    if request.param == "direct" and marks is not None and marks.params.get("library") == "trio":
        pytest.skip("the direct transport runs under asyncio only")
    calls.transport_of_the_test = request.param
    yield
    calls.transport_of_the_test = "httpx2"
