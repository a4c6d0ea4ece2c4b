"""Generated values of the model, for property tests."""

from __future__ import annotations

import re
from typing import Any, get_args

from hypothesis import strategies as st

from dragoman import (
    Audio,
    Base64,
    BlockStart,
    BlockStop,
    CacheControl,
    Citation,
    CitationDelta,
    Document,
    Failed,
    FileId,
    Image,
    InvalidToolUse,
    Message,
    MessageStart,
    MessageStop,
    Notice,
    Opaque,
    OpaqueEvent,
    Origin,
    Parts,
    PlainText,
    ProviderError,
    RedactedThinking,
    Refusal,
    RequestTimeoutError,
    Retrying,
    ServerToolResult,
    ServerToolUse,
    SignatureDelta,
    StopReason,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolInputDelta,
    ToolResult,
    ToolUse,
    UnsupportedStopError,
    Url,
    Usage,
    UsageUpdate,
    Video,
)
from dragoman.errors import KINDS, Phase
from dragoman.message import InvalidReason

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")

# lone surrogates included; two that stand as a pair are one character in JSON, so they cannot come back as two
texts = st.text(st.characters(exclude_categories=()), max_size=8).filter(lambda text: not _PAIR.search(text))
words = st.sampled_from(["a", "tool_1", "dragoman", "anthropic", "v", "type", "null", "NaN"])
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([1e20, 10**25, -0.0])
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | numbers | texts | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts | words, inner, max_size=3),
    max_leaves=6,
)
json_objects = st.dictionaries(texts | words, json_values, max_size=3)
extras = st.just({}) | st.dictionaries(words, json_objects, max_size=2)
caches = st.none() | st.builds(CacheControl, st.sampled_from(["5m", "1h"]))
citations = st.builds(Citation, words, json_objects)

unknown_blocks = st.builds(
    lambda data, tag: Opaque({**data, "type": tag}, wire="dragoman"), json_objects, st.sampled_from(["hologram", "\ud800"])
)
unknown_sources = st.builds(
    lambda tag, data: Opaque({"type": tag, "source": {**data, "type": "pigeon"}}, wire="dragoman"),
    st.sampled_from(["image", "audio", "video", "document"]),
    json_objects,
)
opaques = st.builds(Opaque, json_objects, wire=words) | unknown_blocks | unknown_sources


def _sources(blocks: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return (
        st.builds(Base64, words, words)
        | st.builds(Url, texts)
        | st.builds(FileId, texts)
        | st.builds(PlainText, texts)
        | st.builds(Parts, st.lists(blocks, max_size=2))
    )


def _holders(blocks: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    sources = _sources(blocks)
    return (
        st.builds(ToolResult, texts, st.lists(blocks, max_size=3), is_error=st.booleans(), cache=caches, extra=extras)
        | st.builds(Document, sources, title=st.none() | texts, context=st.none() | texts, cite=st.booleans(), cache=caches, extra=extras)
        | st.builds(Image, sources, cache=caches, extra=extras)
    )


_LEAVES = (
    st.builds(Text, texts, citations=st.lists(citations, max_size=2), cache=caches, extra=extras)
    | st.builds(Refusal, texts, extra=extras)
    | st.builds(Audio, st.builds(FileId, texts), transcript=texts, cache=caches, extra=extras)
    | st.builds(Video, st.builds(Url, texts), cache=caches, extra=extras)
    | st.builds(Thinking, texts, signature=texts, extra=extras)
    | st.builds(RedactedThinking, texts, extra=extras)
    | st.builds(ToolUse, texts, texts, json_objects, cache=caches, extra=extras)
    | st.builds(InvalidToolUse, texts, texts, texts, reason=st.sampled_from(get_args(InvalidReason)), extra=extras)
    | st.builds(ServerToolUse, texts, texts, json_objects, extra=extras)
    | st.builds(ServerToolResult, texts, json_values, kind=words, extra=extras)
    | opaques
)
blocks = st.recursive(_LEAVES, _holders, max_leaves=4)
origins = st.none() | st.builds(Origin, words, texts, words)
messages = st.builds(Message, st.sampled_from(["user", "assistant", "system"]), st.lists(blocks, max_size=4), origin=origins, extra=extras)

counts = st.integers(0, 10**6)
usages = st.builds(
    Usage,
    input=counts,
    output=counts,
    cache_read=counts,
    details=st.dictionaries(words, counts, max_size=2),
    reported_cost=st.none() | st.decimals(0, 100, places=4),
    extra=extras,
)
stops = st.sampled_from(get_args(StopReason))
indexes = st.integers(0, 3)

_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "type": texts,
    "status": st.none() | st.integers(400, 599),
    "code": texts,
    "request_id": texts,
    "retry_after": st.none() | st.floats(0, 1000),
    "retryable": st.booleans(),
}


def _errors(cls: type[ProviderError]) -> st.SearchStrategy[ProviderError]:
    if cls is RequestTimeoutError:  # "total" is never retryable, whatever is said
        return st.builds(cls, texts, phase=st.sampled_from([p for p in get_args(Phase) if p != "total"]), **_FIELDS)
    return st.builds(cls, texts, raw=texts, **_FIELDS) if cls is UnsupportedStopError else st.builds(cls, texts, **_FIELDS)


errors = st.one_of([_errors(cls) for cls in KINDS.values()])
unknown_events = st.builds(lambda data: OpaqueEvent({**data, "type": "telepathy"}, wire="dragoman", kind="telepathy"), json_objects)
events = st.one_of(
    st.builds(MessageStart, texts, texts, provider=words, wire=words, request_id=texts, usage=st.none() | usages, extra=extras),
    st.builds(BlockStart, indexes, blocks),
    st.builds(TextDelta, indexes, texts),
    st.builds(ThinkingDelta, indexes, texts),
    st.builds(SignatureDelta, indexes, texts),
    st.builds(ToolInputDelta, indexes, texts),
    st.builds(CitationDelta, indexes, citations),
    st.builds(BlockStop, indexes, st.none() | blocks),
    st.builds(UsageUpdate, usages),
    st.builds(OpaqueEvent, json_objects, wire=words, kind=words, index=st.none() | indexes),
    unknown_events,
    st.builds(Notice, words, texts, index=st.none() | indexes, path=st.none() | texts),
    st.builds(MessageStop, stops, raw_stop=texts, stop_sequence=st.none() | texts, usage=st.none() | usages, extra=extras),
    st.builds(Failed, errors, stop=st.none() | stops, raw_stop=texts, usage=st.none() | usages),
    st.builds(Retrying, st.integers(1, 9), st.floats(0, 1000), errors),
)
