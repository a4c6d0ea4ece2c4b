"""Stream an answer, print its usage.

python examples/stream.py                               the toy model on this machine
python examples/stream.py anthropic:claude-sonnet-5     with ANTHROPIC_API_KEY set
"""

import sys

from dragoman import Request, connect


def main(name: str = "local") -> None:
    provider = connect(name)
    with provider.stream(Request("Why is the sky blue?")) as stream:
        for text in stream.text():
            print(text, end="", flush=True)
    print("\n", stream.response().usage, sep="")


if __name__ == "__main__":
    main(*sys.argv[1:])
