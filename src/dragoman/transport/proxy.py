"""Which proxy a request goes through, by the environment: the rules of httpx2, which are those of curl.

`HTTP_PROXY`, `HTTPS_PROXY` and `ALL_PROXY` (or lower case; on macOS and Windows the system's settings) name proxies; `NO_PROXY`
lists hosts that are reached directly. httpx2 has these rules only inside its clients, while our pools and other transports need
the answer itself, so they are written down here and tested against httpx2's own.

Each entry becomes a pattern of scheme, host and port; the most specific one that fits decides: with a port before without, an
exact host before a network before none, longer hosts and smaller networks first.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies

__all__ = ["ProxyRules"]

_Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_SCHEMES = ("http", "https", "all")
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class _Pattern:
    scheme: str
    host: str
    port: int | None
    network: _Network | None
    regex: re.Pattern[str] | None

    def matches(self, scheme: str, host: str, port: int | None) -> bool:
        if self.scheme and self.scheme != scheme:
            return False
        if self.network is not None:
            try:
                address = ipaddress.ip_address(host)
            except ValueError:
                return False
            if address not in self.network:
                return False
        elif self.regex is not None and not self.regex.match(host):
            return False
        return self.port is None or self.port == port

    def rank(self) -> tuple[int, int, int, int, int]:
        """Sorts the most specific pattern first."""
        by_network = self.network is not None
        return (
            0 if self.port is not None else 1,
            1 if by_network else 0 if self.host else 2,
            self.network.num_addresses if self.network is not None else 0,
            0 if by_network else -len(self.host),
            -len(self.scheme),
        )


class ProxyRules:
    """Proxies by pattern. The repr shows none of them: proxy URLs hold passwords."""

    def __init__(self, proxies: Mapping[str, str | None]) -> None:
        patterns = [(pattern, proxy) for key, proxy in proxies.items() if (pattern := _pattern(key)) is not None]
        self._patterns = sorted(patterns, key=lambda entry: entry[0].rank())

    @classmethod
    def from_environment(cls) -> ProxyRules:
        """The rules of the environment as it is now."""
        found = getproxies()
        proxies: dict[str, str | None] = {}
        for scheme in _SCHEMES:
            if url := found.get(scheme):
                proxies[f"{scheme}://"] = url if "://" in url else f"http://{url}"
        for entry in (part.strip() for part in found.get("no", "").split(",")):
            if entry == "*":
                return cls({})
            if key := _bypass_key(entry):
                proxies[key] = None
        return cls(proxies)

    def proxy_for(self, url: str) -> str | None:
        """The URL of the proxy for a request to `url`, or None: directly."""
        if not self._patterns:
            return None
        parts = urlsplit(url)
        host = (parts.hostname or "").lower()
        port = None if parts.port == _DEFAULT_PORTS.get(parts.scheme) else parts.port
        return next((proxy for pattern, proxy in self._patterns if pattern.matches(parts.scheme, host, port)), None)

    def __repr__(self) -> str:
        return f"ProxyRules({len(self._patterns)} patterns)"


def _bypass_key(entry: str) -> str:
    """An entry of NO_PROXY as a pattern's key: a bare name stands for itself and its subdomains, `.name` for subdomains only."""
    if not entry or "://" in entry:
        return entry
    if _is_address(entry, ipaddress.IPv4Address):
        return f"all://{entry}"
    if _is_address(entry, ipaddress.IPv6Address):
        address, slash, prefix = entry.partition("/")
        return f"all://[{address}]{slash}{prefix}"
    if entry.lower() == "localhost" or entry.startswith("["):
        return f"all://{entry}"
    if "/" in entry:
        return ""
    return f"all://{entry}" if entry.startswith("*.") else f"all://*{entry}"


def _is_address(text: str, kind: type[ipaddress.IPv4Address | ipaddress.IPv6Address]) -> bool:
    try:
        kind(text.partition("/")[0])
    except ValueError:
        return False
    return True


def _pattern(key: str) -> _Pattern | None:
    """A key as a pattern; None for what cannot be read, which is ignored, as curl does."""
    try:
        parts = urlsplit(key)
        host = (parts.hostname or "").lower()
        port = None if parts.port == _DEFAULT_PORTS.get(parts.scheme) else parts.port
        network = _network(parts, host)
    except ValueError:
        return None
    scheme = "" if parts.scheme == "all" else parts.scheme
    if network is not None:
        return _Pattern(scheme, host, port, network, None)
    return _Pattern(scheme, "" if host == "*" else host, port, None, _host_regex(host))


def _network(parts: SplitResult, host: str) -> _Network | None:
    """The network of a key like `all://192.168.0.0/16`. Raises ValueError for a network that cannot be read."""
    prefix = parts.path.removeprefix("/")
    if not prefix or not (_is_address(host, ipaddress.IPv4Address) or _is_address(host, ipaddress.IPv6Address)):
        return None
    if not prefix.isdigit() or parts.port is not None or "@" in parts.netloc or "%" in parts.netloc or parts.query or parts.fragment:
        raise ValueError("not a network")
    return ipaddress.ip_network(f"{host}/{prefix}", strict=False)


def _host_regex(host: str) -> re.Pattern[str] | None:
    if not host or host == "*":
        return None
    if host.startswith("*."):
        return re.compile(rf"^.+\.{re.escape(host[2:])}$")
    if host.startswith("*"):
        return re.compile(rf"^(.+\.)?{re.escape(host[1:])}$")
    return re.compile(rf"^{re.escape(host)}$")
