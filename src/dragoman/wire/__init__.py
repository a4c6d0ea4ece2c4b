"""Wires: the HTTP dialects of providers, as pure translations. Nothing in here does I/O or knows the time."""

from __future__ import annotations

from dragoman.wire.base import Auth, Decoder, HTTPRequest, ServerWire, Wire

__all__ = ["Auth", "Decoder", "HTTPRequest", "ServerWire", "Wire"]
