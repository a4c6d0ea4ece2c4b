"""Ask many things at once on one event loop, with one provider; a failure of one does not touch the others."""

import asyncio
import sys

from dragoman import ProviderBase, ProviderError, Request, connect

CITIES = ["Paris", "Vienna", "Lima"]


async def ask(provider: ProviderBase, city: str) -> str:
    try:
        response = await provider.acomplete(Request(f"Say one thing about {city}.", max_tokens=30))
    except ProviderError as error:
        return f"{city}: {error.kind}, retrying would {'' if error.retryable else 'not '}help"
    return f"{city}: {response.text!r} ({response.usage.output} tokens)"


async def main(name: str = "local") -> None:
    async with connect(name) as provider:
        for answer in asyncio.as_completed([ask(provider, city) for city in CITIES]):
            print(await answer)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
