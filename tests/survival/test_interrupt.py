"""Ctrl-C in the main thread, by a real signal: it comes through as KeyboardInterrupt at once, closes the connection, repeats nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.testing import WireServer

from .calls import WAITS

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends signals")

HEAD = """
import asyncio, signal, sys
from dragoman import Anthropic, Request, RetryPolicy, Timeouts

signal.signal(signal.SIGINT, signal.default_int_handler)
provider = Anthropic(api_key="k", base_url=sys.argv[1], model="m", telemetry=None,
                     retry=RetryPolicy(base=300, max_wait=600, cap=600, jitter="none"),
                     timeouts=Timeouts(connect=None, first_byte=None, idle=None))

def say(stream):
    print("interrupted", stream.closed, repr(stream.partial().text), flush=True)
"""

SYNC = """
stream = provider.stream(Request("hi"))
try:
    with stream:
        for event in stream:
            print(event.type, flush=True)
except KeyboardInterrupt:
    say(stream)
    sys.stdin.read()  # alive, so that it is not the end of the process that closes the connection
provider.close()
"""

ASYNC = """
async def main():
    stream = provider.astream(Request("hi"))
    try:
        async with stream:
            async for event in stream:
                print(event.type, flush=True)
    except asyncio.CancelledError:
        say(stream)
        raise

try:
    asyncio.run(main())
except KeyboardInterrupt:
    sys.stdin.read()
"""


@pytest.mark.parametrize("program", [SYNC, ASYNC], ids=["sync", "async"])
@pytest.mark.parametrize("phase", WAITS)
def test_ctrl_c_ends_a_wait_at_once(phase: str, program: str) -> None:
    seen = {"head": None, "body": b"text_delta\n", "back-off": b"retrying\n"}[phase]
    text = {"head": "''", "body": "'He'", "back-off": "''"}[phase]
    environment = {**os.environ, "PYTHONWARNINGS": "error", "NO_PROXY": "*", "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    with WireServer(WAITS[phase]()) as server:
        with subprocess.Popen(
            [sys.executable, "-c", HEAD + program, server.url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        ) as child:
            assert child.stdout is not None
            try:
                server.wait_requests(1, 30)
                while seen is not None and child.stdout.readline() != seen:
                    assert child.poll() is None
                child.send_signal(signal.SIGINT)
                assert child.stdout.readline().decode() == f"interrupted True {text}\n"
                if phase != "back-off":  # there the answer was complete, and its connection may wait for the next call
                    server.wait_closed()
                out, err = child.communicate(b"", timeout=30)
            finally:
                child.kill()
        assert (out, err, child.returncode) == (b"", b"", 0)
        assert len(server.requests) == 1
