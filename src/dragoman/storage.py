"""The stored form: values to JSON and back, stable over versions, losing nothing that a newer version wrote.

Strategy. The types are the schema: msgspec writes and reads them at the speed of C, and that is the whole story for nearly every
value. What msgspec cannot say is looked for in its output or in its refusal, and only then handled in Python:

* writing: `null` in the output may be a NaN (refused, with its path); `"dragoman"` may be a block or event that an older version
  of us did not know (`Opaque(wire="dragoman")`), which is written back as itself; a lone surrogate goes through `json`.
* reading: what the typed decoder refuses is parsed untyped, walked along its type (`dragoman.newer`) and converted again: unknown
  blocks become `Opaque`, unknown events `OpaqueEvent`, unknown stop reasons `unknown`, and `v` is checked. Bad data stays bad.

The format is additive: defaults are left out, tags and names never change, `v` is left out while it is 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from math import isfinite
from typing import Any, TypeVar, cast, get_args, overload

import msgspec
from msgspec.structs import replace

from dragoman.errors import KINDS, Phase, ProviderError, RequestTimeoutError, StorageError, UnsupportedStopError
from dragoman.event import OpaqueEvent
from dragoman.message import Message, Opaque, ServerToolResult
from dragoman.newer import OWN_WIRE, VERSION, as_object, is_unknown_block, is_unknown_event, walk_of
from dragoman.value import Secret

__all__ = ["VERSION", "from_builtins", "from_json", "json_schema", "to_builtins", "to_json"]

T = TypeVar("T")

_PHASES = frozenset(get_args(Phase))


# ---- writing


def to_json(value: object) -> bytes:
    """The stored form of a Message, Request, Response, block, event, or a list or dict of these, as UTF-8 JSON.

    The same value gives the same bytes, on every platform. Raises StorageError with the path of what JSON cannot hold (NaN, infinity,
    a foreign object, nesting beyond the interpreter's recursion limit).
    """
    try:
        data = _ENCODER.encode(value)
    except UnicodeEncodeError:
        return _escaped(value)
    except RecursionError:
        raise StorageError(_TOO_DEEP) from None
    except (TypeError, ValueError, OverflowError) as error:
        raise _unstorable(value, str(error)) from None
    if b"null" in data or b'"reported_cost"' in data:
        _refuse_non_finite(value)
    if b'"dragoman"' in data:
        data = _ENCODER.encode(_lowered(value))
    return data


def to_builtins(value: object) -> Any:
    """The stored form as dicts, lists, strings and numbers, for a JSON writer of your own. Raises StorageError as `to_json` does."""
    try:
        tree = _tree(_lowered(value))
    except RecursionError:
        raise StorageError(_TOO_DEEP) from None
    except (TypeError, ValueError, OverflowError) as error:
        raise _unstorable(value, str(error)) from None
    _refuse_non_finite(value)
    return tree


def _escaped(value: object) -> bytes:
    """As `to_json`, for a value with lone surrogates, which msgspec refuses: written as `\\udXXX`."""
    import json

    try:
        text = json.dumps(to_builtins(value), ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        raise StorageError(_TOO_DEEP) from None
    return text.encode("utf-8", "backslashreplace")  # only surrogates have no UTF-8, and their replacement is JSON's own escape


class _StoredError(msgspec.Struct, omit_defaults=True):
    """What is kept of a ProviderError. `phase` is RequestTimeoutError's, `raw` is UnsupportedStopError's."""

    kind: str
    type: str = ""
    message: str = ""
    status: int | None = None
    code: str = ""
    request_id: str = ""
    retry_after: float | None = None
    retryable: bool | None = None
    phase: str = ""
    raw: str = ""


def _stored_error(error: ProviderError) -> _StoredError:
    return _StoredError(
        kind=error.kind,
        type=error.type,
        message=error.message,
        status=error.status,
        code=error.code,
        request_id=error.request_id,
        retry_after=error.retry_after,
        retryable=error.retryable,
        phase=error.phase if isinstance(error, RequestTimeoutError) else "",
        raw=error.raw if isinstance(error, UnsupportedStopError) else "",
    )


def _write_hook(value: object) -> object:
    if isinstance(value, ProviderError):
        return _stored_error(value)
    if isinstance(value, Secret):
        raise TypeError("a key or token is not stored: keep the settings, and read the key anew")
    raise TypeError(f"a value of type {type(value).__name__} is not JSON")


_ENCODER = msgspec.json.Encoder(enc_hook=_write_hook)


def _lowered(value: Any) -> Any:
    """The value with each Opaque and OpaqueEvent of ours replaced by the data it holds; the value itself if there is none."""
    if isinstance(value, Opaque):
        return value.data if value.wire == OWN_WIRE and is_unknown_block(value.data) else value
    if isinstance(value, OpaqueEvent):
        ours = value.wire == OWN_WIRE and value.index is None and value.kind == value.data.get("type") and is_unknown_event(value.data)
        return value.data if ours else value
    if isinstance(value, ServerToolResult):  # its content is the wire's, not ours
        return value
    if isinstance(value, msgspec.Struct):
        changes: dict[str, Any] = {}
        for name in value.__struct_fields__:
            field = getattr(value, name)
            if isinstance(field, msgspec.Struct | list) and (lowered := _lowered(field)) is not field:
                changes[name] = lowered
        return replace(value, **changes) if changes else value
    if isinstance(value, list | tuple):
        items = cast("list[Any]", value)
        lowered_items = [_lowered(item) for item in items]
        return value if all(new is old for new, old in zip(lowered_items, items, strict=True)) else lowered_items  # pyright: ignore[reportUnknownVariableType]
    data = as_object(value)
    return value if data is None else {key: _lowered(item) for key, item in data.items()}


# ---- what JSON cannot hold

_TOO_DEEP = "nested too deeply to be stored or read"


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    """What stands in a value, each with its step of the path."""
    if isinstance(value, ProviderError):
        value = _stored_error(value)
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield f".{name}", getattr(value, name)
    elif (data := as_object(value)) is not None:
        for key, item in data.items():
            yield (f".{key}" if str(key).isidentifier() else f"[{key!r}]"), item
    elif isinstance(value, list | tuple):
        for index, item in enumerate(cast("list[Any]", value)):
            yield f"[{index}]", item


def _is_non_finite(value: Any) -> bool:
    return not (isfinite(value) if isinstance(value, float) else value.is_finite() if isinstance(value, Decimal) else True)


_BAD_COST = r'"reported_cost":"-?[^-0-9]'


def _refuse_non_finite(value: object, verb: str = "stored") -> None:
    """Raise StorageError if a NaN or an infinity stands anywhere in the value (msgspec would write `null`).

    The standard library's encoder looks for them in C; only when it has found one, or may have, the value is walked for its path.
    """
    import json

    try:
        text = json.dumps(_tree(value), allow_nan=False, separators=(",", ":"))
    except RecursionError:
        text = '"reported_cost":"?'  # unknown
    except (TypeError, ValueError, OverflowError) as error:
        raise _unstorable(value, str(error), verb) from None
    if not re.search(_BAD_COST, text):
        return
    stack: list[Any] = [value]
    while stack:
        item = stack.pop()
        if _is_non_finite(item):
            raise _unstorable(value, "", verb)
        stack.extend(child for _, child in _children(item))


def _tree(value: object) -> Any:
    return msgspec.to_builtins(value, enc_hook=_write_hook, str_keys=True)


def _unstorable(value: object, reason: str, verb: str = "stored") -> StorageError:
    """The error for a value that cannot be written, with the path of the first thing in it that is to blame."""
    stack: list[tuple[str, Any]] = [("$", value)]
    seen: set[int] = set()
    while stack:
        path, item = stack.pop()
        children = list(_children(item))
        if not children and (problem := _leaf_problem(item)):
            return StorageError(f"cannot be {verb}: {problem}, at {path}", path)
        if children and id(item) not in seen:  # a list may hold itself
            stack.extend((path + step, child) for step, child in reversed(children))
            seen.add(id(item))
    return StorageError(f"cannot be {verb}: {reason}")


def _leaf_problem(value: Any) -> str:
    if _is_non_finite(value):
        return "NaN and infinity are not JSON"
    try:
        _ENCODER.encode(value)
    except UnicodeEncodeError:
        return ""
    except (TypeError, ValueError, OverflowError) as error:
        return str(error)
    return ""


# ---- reading


@overload
def from_json(data: bytes | str) -> Message: ...
@overload
def from_json(data: bytes | str, type: type[T]) -> T: ...
@overload
def from_json(data: bytes | str, type: Any) -> Any: ...
def from_json(data: bytes | str, type: Any = Message) -> Any:
    """The value that `to_json` wrote. `type` is Message, Request, Response, a block, a union such as `Block` or `Event`, or `list[…]`.

    Raises StorageError with the path (`$.content[0].text`) for data that is not of this type, was written by a newer format version,
    or is not JSON (a dict is none: `dragoman.storage.from_builtins` reads it); and nothing else.
    """
    if isinstance(data, str):
        data = data.encode("utf-8", "backslashreplace")  # a lone surrogate becomes its JSON escape
    elif not isinstance(data, bytes):  # pyright: ignore[reportUnnecessaryIsInstance]
        data = _bytes(data)
    value = _read(data, type)
    if b'"reported_cost"' in data:
        _refuse_non_finite(value, "read")
    return value


def _bytes(data: object) -> bytes:
    """The same bytes, of the kinds that databases give. Raises StorageError for what is none."""
    if isinstance(data, bytearray):
        return bytes(data)
    if isinstance(data, memoryview):
        return data.tobytes()
    raise StorageError(f"cannot be read: JSON is text or bytes, not {data.__class__.__name__}")


def _read(data: bytes, type: Any) -> Any:
    if b'"v"' not in data:
        try:
            return _decoder(type).decode(data)
        except (msgspec.MsgspecError, RecursionError):
            pass  # the slow path reads it, or says what is wrong
    return _converted(_parse(data), type)


@overload
def from_builtins(obj: object, type: type[T]) -> T: ...
@overload
def from_builtins(obj: object, type: Any) -> Any: ...
def from_builtins(obj: object, type: Any) -> Any:
    """The value whose stored form, as dicts and lists, is `obj`; values already made may stand in it. Raises StorageError."""
    value = _converted(obj, type)
    _refuse_non_finite(value, "read")
    return value


def _converted(obj: object, type: Any) -> Any:
    try:
        walk = walk_of(type)
        return msgspec.convert(obj if walk is None else walk(obj, "$"), type, dec_hook=_read_hook)
    except RecursionError:
        raise StorageError(_TOO_DEEP) from None
    except msgspec.ValidationError as error:
        raise _unreadable(error) from None
    except UnicodeEncodeError:
        raise StorageError("cannot be read: a lone surrogate where only one of our own words may stand") from None


def _parse(data: bytes) -> Any:
    """Plain JSON, with lone surrogates allowed."""
    try:
        return msgspec.json.decode(data)
    except RecursionError:
        raise StorageError(_TOO_DEEP) from None
    except msgspec.MsgspecError as error:
        import json

        try:
            value = json.loads(data.decode())  # takes NaN and infinity, so that their path can be told
        except RecursionError:
            raise StorageError(_TOO_DEEP) from None
        except ValueError:
            raise _unreadable(error) from None
        _refuse_non_finite(value, "read")
        return value


_AT = r"(?s)^(?P<what>.*?)(?: - at .*?`(?P<path>\$.*)`)?$"


def _unreadable(error: msgspec.MsgspecError) -> StorageError:
    """msgspec's refusal as ours: its path kept, the values it quotes left out."""
    match = re.match(_AT, str(error))
    assert match is not None  # every part is optional
    what, path = match["what"], match["path"] or "$"
    if what.startswith(("Invalid value", "Invalid enum value")):
        what = "Not one of the allowed values"
    return StorageError(f"cannot be read: {what}, at {path}", path)


@lru_cache(maxsize=256)
def _decoder(type: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(type, dec_hook=_read_hook)


def _read_hook(type: Any, obj: Any) -> object:
    if type is not ProviderError:
        raise TypeError(f"{type!r} has no stored form")
    if isinstance(obj, ProviderError):
        return obj
    try:
        stored = msgspec.convert(obj, _StoredError)
    except msgspec.ValidationError as error:  # its path begins here; msgspec puts ours before a ValueError's text only
        raise ValueError(str(error).replace(" - at `$.", ", in `")) from None
    cls = KINDS.get(stored.kind, ProviderError)
    fields: dict[str, Any] = {
        "type": stored.type,
        "status": stored.status,
        "code": stored.code,
        "request_id": stored.request_id,
        "retry_after": stored.retry_after,
    }
    if cls is RequestTimeoutError:
        fields["phase"] = stored.phase if stored.phase in _PHASES else "server"
    elif cls is UnsupportedStopError:
        fields["raw"] = stored.raw
    failure = cls(stored.message, **fields)
    if stored.retryable is not None:
        failure.retryable = stored.retryable
    if cls is ProviderError:
        failure.__dict__["kind"] = stored.kind  # of a newer version: written back as it came
    return failure


# ---- the schema of the stored form


def json_schema(type: Any) -> dict[str, Any]:
    """The JSON schema (2020-12) of a type's stored form."""
    return msgspec.json.schema(type, schema_hook=_schema_hook)


def _schema_hook(type: Any) -> dict[str, Any]:
    if type is ProviderError:
        return {"type": "object", "title": "ProviderError", "properties": {"kind": {"type": "string"}}, "required": ["kind"]}
    raise NotImplementedError  # how a hook tells msgspec that it does not know a type
