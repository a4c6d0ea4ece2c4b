"""Is this sendable, and make it so: `problems`, `repair`, `replayable`.

Strategy. All three are pure and mutate nothing. `problems` asks every check of `dragoman.validation` and reports all it finds at once,
since a caller who fixes one problem per round trip is a caller who gives up. `repair` mends a history, so that a conversation that was
cut off, edited or stored wrongly can go on; it changes as little as it can, reports each change, and a second run changes nothing.
`replayable` keeps of an interrupted answer what may be sent back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dragoman.catalog import ModelRules, rules
from dragoman.errors import InvalidInputError, Problem
from dragoman.message import (
    Block,
    InvalidToolUse,
    Message,
    Opaque,
    RedactedThinking,
    Refusal,
    ServerToolResult,
    ServerToolUse,
    Text,
    Thinking,
)
from dragoman.request import Request
from dragoman.validation.blocks import BLOCKS, check_json
from dragoman.validation.dialect import Dialect, dialect_of
from dragoman.validation.headers import check_headers, sent_betas, sent_version
from dragoman.validation.keys import check_keys
from dragoman.validation.marks import check_marks
from dragoman.validation.repair import Change, Repaired, mend, mistyped
from dragoman.validation.schemas import check_strict
from dragoman.validation.settings import check_settings
from dragoman.validation.tools import check_tools
from dragoman.validation.turns import DoubtError, Turns
from dragoman.validation.types import Look, wrong_types
from dragoman.validation.verbatim import check_verbatim

if TYPE_CHECKING:
    from dragoman.wire.base import Wire

__all__ = ["Change", "Repaired", "local_problems", "problems", "repair", "replayable", "required"]

MAX_MESSAGES = 100_000
"""Messages in one request (anthropic.md §3)."""

_NO_RULES = ModelRules()
_DEFAULTS = Request("")
_FIRST = re.compile(r"[.\[]")
_ITEM = re.compile(r"messages\[(?P<message>\d+)\](?:\.content\[(?P<block>\d+)\])?")


def required(request: Request, label: str) -> list[Problem]:
    """What no request can be without, whatever `validate` says: a model, and a user or assistant message.

    `label` is the provider's name in the texts (`Anthropic request requires a model`).
    """
    found: list[Problem] = []
    if not request.model or (isinstance(request.model, str) and request.model.isspace()):  # pyright: ignore[reportUnnecessaryIsInstance]
        found.append(Problem("model", "required", f"{label} request requires a model", "set Request.model, or the provider's model"))
    for message in request.messages:  # a generator that is left early costs as much as fifty turns of this
        if getattr(message, "role", "") != "system":
            break
    else:
        text = f"{label} request requires at least one user/assistant message"
        found.append(Problem("messages", "required", text, "add a user message"))
    return found


def problems(request: Request, wire: Wire) -> list[Problem]:
    """Everything that keeps a request from being sent by this wire, in the order parameters, tools, messages, cache marks.

    An empty list means: it encodes, and nothing we know of would make the provider refuse it. Each Problem has the path into the
    request, a stable rule code (docs/reference/validation.md lists them), what is wrong and what to do. Pure; never raises for what a
    request holds.
    """
    out, typed = _look(request, wire)
    encodable = typed and not any(problem.rule == "not_json" for problem in out)
    if encodable:
        check_keys(request, wire.name, out)
    if encodable and not dialect_of(wire.name).claude and hasattr(wire, "encode"):  # a stand-in may have but a name
        _ask_wire(request, wire, out)
    return out


def local_problems(request: Request, wire: Wire) -> list[Problem]:
    """Those of `problems` that can be told without encoding: for whoever encodes next, and hears the rest from the wire itself.

    Nothing is left to a wire but what it says in the very same words: its own limits and, if it has `tells_json`, the inputs of calls and
    the schemas of tools that JSON has no form for, which are most of what there is to look at in a long history.
    """
    return _look(request, wire, json=not getattr(wire, "tells_json", False))[0]


def _ask_wire(request: Request, wire: Wire, out: list[Problem]) -> None:
    """Add what the wire itself cannot write, unless it is known: that is where a dialect's own limits are. (What the Messages API refuses
    is known without asking.)
    """
    try:
        wire.encode(request, stream=True)
    except InvalidInputError as error:
        known = tuple(problem.path for problem in out)
        out += [new for new in error.problems if not any(old.startswith(new.path) or new.path.startswith(old) for old in known)]


def _look(request: Request, wire: Wire, *, json: bool = True) -> tuple[list[Problem], bool]:
    """What is wrong, and whether all of it has the right types. `json`: inputs and schemas are looked into."""
    dialect = dialect_of(wire.name)
    claude = dialect.claude
    api_version = sent_version(request, str(getattr(wire, "api_version", "")))
    out = required(request, dialect.label)
    look = Look()
    typed = True
    turns = _turns(request, dialect, look, wire.name, api_version) if look.settings(request) else None
    if turns is None:
        mistyped = wrong_types(request)
        out += mistyped
        typed = not mistyped
        request, sound = (request, True) if typed else _without(request, mistyped)
        turns = _turns(request, dialect, look, wire.name, api_version, trusted=True) if sound else None
    model = _rules(request, dialect)
    if len(request.messages) > MAX_MESSAGES:
        out.append(Problem("messages", "too_many_messages", f"more than {MAX_MESSAGES} messages", "drop or summarize the oldest"))
    if claude:
        betas = sent_betas(request, getattr(wire, "betas", ()))
        check_settings(request, model, api_version=api_version, betas=betas, out=out)
    if request.extra_headers or request.betas:
        check_headers(request, out)
    if request.metadata:
        check_json(request.metadata, "metadata", out)
    if request.output is not None:
        check_json(request.output.schema, "output.schema", out)
    if request.extra_body:
        _check_body(request, out)
    if request.tools or request.tool_choice is not None:
        check_tools(request, model, dialect, out, json=json)
    if claude and (request.tools or request.output is not None):
        check_strict(request, out)
    if turns is None:
        return out, False
    check_verbatim(request, look, turns.inputs if json else (), wire=wire.name, claude=claude, out=out)
    out += turns.out
    if claude:
        if turns.silent and not any(problem.path == "messages" for problem in out):
            text = f"{dialect.label} request requires at least one user/assistant message"
            out.append(Problem("messages", "required", text, "add a user message with text"))
        if turns.marked or request.tools or not isinstance(request.system, str):
            check_marks(request, model, out, in_messages=turns.marked)
    return out, typed


def _rules(request: Request, dialect: Dialect) -> ModelRules:
    return rules(request.model) if dialect.claude else _NO_RULES


def _turns(request: Request, dialect: Dialect, look: Look, wire: str, api_version: str, *, trusted: bool = False) -> Turns | None:
    """The pass over the messages; None if a value may be of a wrong type."""
    turns = Turns(request, dialect, _rules(request, dialect), look, wire=wire, api_version=api_version, trusted=trusted)
    try:
        turns.run()
    except (DoubtError, TypeError):  # a TypeError is an id or name that cannot be looked up
        if trusted:
            raise
        return None
    return turns


def _check_body(request: Request, out: list[Problem]) -> None:
    count = request.extra_body.get("n")
    if isinstance(count, int) and count > 1:
        out.append(Problem("extra_body.n", "n", f"one request gives one answer, not {count}", "send n calls"))
    check_json(request.extra_body, "extra_body", out)


_READ_WITH = {"tools": ("tool_choice",), "thinking": ("tool_choice", "temperature", "top_p", "top_k", "effort")}
"""Fields that nothing can be said of while another is not known."""


def _without(request: Request, mistyped: Iterable[Problem]) -> tuple[Request, bool]:
    """The request with its mistyped fields at their defaults and what is no message or block replaced, so that the rest can be looked at.

    Also whether its messages can be: a call whose id is no string leaves nothing to say of the results.
    """
    names: set[str] = set()
    messages = list(request.messages)
    sound = True
    for problem in mistyped:
        place = _ITEM.fullmatch(problem.path)
        if not problem.path.startswith("messages"):
            names.add(_FIRST.split(problem.path, maxsplit=1)[0])
        elif place is None or problem.rule not in ("not_a_message", "not_a_block"):
            sound = False
        elif place["block"] is None:
            messages[int(place["message"])] = Message("system", "")  # says nothing, and separates no turns
        else:
            i = int(place["message"])
            content = list(messages[i].content)
            content[int(place["block"])] = Text("…")
            messages[i] = replace(messages[i], content=content)
    names.update(chain.from_iterable(_READ_WITH.get(name, ()) for name in tuple(names)))
    return request.replace(messages=messages, **{name: getattr(_DEFAULTS, name) for name in names}), sound


def repair(messages: str | Message | Iterable[Message | str]) -> Repaired:
    """A history that can go on, and every change that this took: `problems` then has nothing against it but what depends on the model,
    the settings or the provider.

    Unanswered tool uses get an `is_error` result, results that answer no call are dropped, several results of one call become one.
    Blocks that cannot stand or be written where they are, wrong labels of images and documents, values that JSON has no form for, debris
    of streams, illegal tool names and empty user turns are mended or dropped too. Pure and idempotent: nothing is mutated, messages that
    need nothing are the same objects, and a second run changes nothing.

    Not touched is what the provider decides (sound and film, media types it does not take, blocks of another dialect, of which alone a
    user turn may be made), the model (images, PDF, a system message among the others, a prefill) or the settings (cache marks, the API
    version). A history in which nobody has spoken yet (nothing, or system messages only) stays so, and needs a message before it can be
    sent. A string is a user message, as in `Request`. Raises InvalidInputError for what is no message, and for fields of a wrong type.
    """
    return mend(messages)


def replayable(message: Message | str) -> Message | None:
    """What of an interrupted answer may be sent back: `stream.partial()`, made a turn of a history. None if nothing may.

    Left out: a call that was cut off, a server-side call without its result (unless a call that is kept was made by it, as code that
    runs there does), unsigned thinking, empty text, and thinking that nothing follows. What is left may hold tool uses; answer them, or
    let `repair` do it. A user or system message is returned as it is; a string is a user message. Raises InvalidInputError for what is no
    message, and for fields of a wrong type.
    """
    (message,) = Request([message]).messages
    if wrong := mistyped([message]):
        raise InvalidInputError([replace(problem, path=problem.path.replace("messages[0]", "message", 1)) for problem in wrong])
    if message.role != "assistant":
        return message if message.content else None
    needed = {block.tool_use_id for block in message.content if isinstance(block, ServerToolResult)}
    kept: list[Block] = []
    for block in reversed(message.content):  # what calls stands before what it called
        if type(block) in BLOCKS and _is_replayable(block, needed):  # stores hold other things
            kept.append(block)
            needed.update(_callers(block))
    kept.reverse()
    while kept and isinstance(kept[-1], Thinking | RedactedThinking):  # the API refuses a turn that ends with thinking
        kept.pop()
    if not kept:
        return None
    return message if len(kept) == len(message.content) else replace(message, content=kept)


def _is_replayable(block: Block, needed: set[str]) -> bool:
    match block:
        case Text() | Refusal():
            return bool(block.text.strip() or block.extra)
        case Thinking():
            return bool(block.signature)
        case InvalidToolUse():
            return block.reason != "incomplete"
        case ServerToolUse():
            return block.id in needed
        case _:
            return True


def _callers(block: Block) -> Iterator[str]:
    """The id of the server-side call that made this block, if one did: `caller` names it (anthropic.md §6)."""
    for carried in (block.data,) if isinstance(block, Opaque) else block.extra.values():
        match carried.get("caller"):
            case {"tool_id": str(id)}:
                yield id
            case _:
                pass
