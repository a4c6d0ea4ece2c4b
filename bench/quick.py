"""`make bench-quick`: what decoding, folding and importing cost, and the shape of it, in under a minute.

Everything is a ratio of two things measured side by side in this run, in CPU time, best of several rounds: absolute figures of a busy
machine mean nothing. Exits with 1 if a shape is broken: not linear, more modules than allowed, too far from a bare decode.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import msgspec

from dragoman import Accumulator, Response
from dragoman.wire.anthropic import AnthropicWire

ROUNDS = 7
STREAM = 20_000
LIMITS = {
    "codec / bare decode": 5.0,
    "tool input 50,000 / 10,000 fragments": 7.5,
    "text 100,000 / 20,000 deltas": 7.5,
    "history 2,000 / 400 messages, encode": 7.5,
    "modules after import": 200,
    "import over bare Python, ms of CPU": 40,
}
"""What must hold. The linear ones compare five times the work: 5 is linear, 25 quadratic."""


def sse(event: dict[str, Any]) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event, separators=(',', ':'))}\n\n".encode()


def stream_of(block: dict[str, Any], deltas: list[dict[str, Any]]) -> tuple[bytes, list[bytes]]:
    """A whole stream, and the bare payloads of its deltas."""
    frames = [sse({"type": "content_block_delta", "index": 0, "delta": delta}) for delta in deltas]
    head = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "c",
        "content": [],
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    start = sse({"type": "message_start", "message": head}) + sse({"type": "content_block_start", "index": 0, "content_block": block})
    end = sse({"type": "content_block_stop", "index": 0})
    end += sse({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}})
    return start + b"".join(frames) + end + sse({"type": "message_stop"}), [frame.split(b"data: ")[1].strip() for frame in frames]


def text_stream(count: int) -> tuple[bytes, list[bytes]]:
    return stream_of({"type": "text", "text": ""}, [{"type": "text_delta", "text": f" word{n % 97}"} for n in range(count)])


def tool_stream(count: int) -> bytes:
    pieces = ['{"text": "', *["abcdefgh"] * (count - 2), '"}']
    block = {"type": "tool_use", "id": "t", "name": "write", "input": {}}
    return stream_of(block, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces])[0]


def fold(data: bytes, chunk: int = 65536) -> Response:
    """Bytes to the final response, as a driver does it."""
    decoder = AnthropicWire().decoder(headers={"content-type": "text/event-stream"})
    accumulator = Accumulator()
    push = accumulator.push
    for at in range(0, len(data), chunk):
        for event in decoder.feed(data[at : at + chunk]):
            push(event)
    for event in decoder.close():
        push(event)
    return accumulator.response()


class TextDelta(msgspec.Struct, tag="text_delta"):
    text: str


class InputDelta(msgspec.Struct, tag="input_json_delta"):
    partial_json: str


class Delta(msgspec.Struct, tag="content_block_delta"):
    index: int
    delta: TextDelta | InputDelta


def cpu(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def interleaved(*works: Callable[[], object]) -> list[float]:
    """The best CPU time of each, the rounds taking turns."""
    rounds = [[cpu(work) for work in works] for _ in range(ROUNDS)]
    return [min(times) for times in zip(*rounds, strict=True)]


def codec() -> tuple[float, float]:
    """The ratio to a bare typed decode of the same events, and microseconds per delta."""
    data, payloads = text_stream(STREAM)
    decode = msgspec.json.Decoder(Delta).decode
    assert len(fold(data).text) == sum(len(f" word{n % 97}") for n in range(STREAM))
    bare, whole = interleaved(lambda: [decode(payload) for payload in payloads], lambda: fold(data))
    return whole / bare, whole / STREAM * 1e6


def growth(small: Callable[[], object], large: Callable[[], object]) -> float:
    one, five = interleaved(small, large)
    return five / one


def history(count: int) -> Callable[[], object]:
    from dragoman import Message, Request, ToolUse, tool_result, user

    turns: list[Message] = []
    for n in range(count // 2):
        call = ToolUse(f"toolu_{n}", "read", {"path": f"/src/file{n}.py", "lines": [n, n + 20]})
        turns += [Message("assistant", ["Looking.", call]), user(tool_result(call, "x" * 1000))]
    request = Request([user("go"), *turns], model="claude-test-1")
    wire = AnthropicWire()
    return lambda: wire.encode(request, stream=True)


def imports() -> tuple[float, int]:
    """Milliseconds of CPU that `import dragoman` costs over bare Python, and the modules loaded after it."""
    code = "import resource,sys\n{}\nu=resource.getrusage(resource.RUSAGE_SELF)\nprint(u.ru_utime+u.ru_stime,len(sys.modules))"

    def run(line: str) -> tuple[float, int]:
        seconds, modules = subprocess.run(
            [sys.executable, "-c", code.format(line)], capture_output=True, check=True, text=True
        ).stdout.split()
        return float(seconds), int(modules)

    run("import dragoman")  # writes the bytecode
    pairs = [(run("pass")[0], *run("import dragoman")) for _ in range(9)]
    return statistics.median(with_[1] - with_[0] for with_ in pairs) * 1e3, pairs[0][2]


def main() -> int:
    ratio, micros = codec()
    milliseconds, modules = imports()
    small_tool, large_tool = tool_stream(10_000), tool_stream(50_000)
    small_text, large_text = text_stream(20_000)[0], text_stream(100_000)[0]
    found = {
        "codec / bare decode": ratio,
        "tool input 50,000 / 10,000 fragments": growth(lambda: fold(small_tool), lambda: fold(large_tool)),
        "text 100,000 / 20,000 deltas": growth(lambda: fold(small_text), lambda: fold(large_text)),
        "history 2,000 / 400 messages, encode": growth(history(400), history(2_000)),
        "modules after import": float(modules),
        "import over bare Python, ms of CPU": milliseconds,
    }
    broken = [name for name, value in found.items() if value > LIMITS[name]]
    for name, value in found.items():
        print(f"{'BROKEN ' if name in broken else ''}{name:40} {value:8.2f}   at most {LIMITS[name]:g}")
    print(f"({micros:.2f} microseconds of CPU per delta, bytes to response, in this run)")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
