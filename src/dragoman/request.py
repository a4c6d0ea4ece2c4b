"""What is asked of a model: the request, its tools, and the settings of thinking, output and tracing.

A `Request` is a value: it holds everything the caller says and nothing a provider decides. Fields left at their default are not
sent; a provider's own defaults apply where the request says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from msgspec.structs import force_setattr, replace

from dragoman.message import CacheControl, Extra, Message, Text
from dragoman.value import Value, own_dict, own_list, snake_case

__all__ = [
    "CacheMode",
    "Effort",
    "OutputFormat",
    "ProviderTool",
    "Request",
    "Tenant",
    "ThinkingConfig",
    "Tool",
    "ToolChoice",
    "ToolNamed",
    "TraceInfo",
]

Effort = Literal["minimal", "low", "medium", "high", "xhigh", "max"]
CacheMode = Literal["explicit", "auto", "provider", "off"]


class ToolNamed(Value, frozen=True):
    """The tool choice "this one, and no other"."""

    name: str


ToolChoice: TypeAlias = Literal["auto", "none", "required", "required_if_allowed"] | ToolNamed


class _ToolOptions(Value, frozen=True, kw_only=True):
    strict: bool = False
    eager_input_streaming: bool = False
    cache: CacheControl | None = None
    extra: Extra = {}


class Tool(_ToolOptions, frozen=True, tag=snake_case, tag_field="kind"):
    """A function that the model may call and the caller runs. No `input_schema` means: no parameters."""

    name: str
    description: str = ""
    input_schema: dict[str, Any] = {}
    kind: ClassVar[Literal["tool"]] = "tool"

    def __post_init__(self) -> None:
        own_dict(self, "input_schema", "extra")

    @classmethod
    def of(cls, function: Callable[..., object], *, strict: bool = False) -> Tool:
        """A tool from a typed, documented function: its name, the first paragraph of its docstring, a schema of its parameters.

        Raises TypeError naming the parameter that has no annotation or one that JSON cannot carry.
        """
        from dragoman.schema import tool_of

        return tool_of(function, strict=strict)


class _ProviderToolOptions(Value, frozen=True, kw_only=True):
    hosted: bool | None = None
    cache: CacheControl | None = None
    extra: Extra = {}


class ProviderTool(_ProviderToolOptions, frozen=True, tag=snake_case, tag_field="kind"):
    """A tool whose schema the provider knows, by its dated type. `hosted` says where it runs: True with the provider
    (web search), False with the caller (bash, memory), None: the wire's own table decides.
    """

    type: str
    name: str
    options: dict[str, Any] = {}
    kind: ClassVar[Literal["provider_tool"]] = "provider_tool"

    def __post_init__(self) -> None:
        own_dict(self, "options", "extra")


class _ThinkingConfigOptions(Value, frozen=True, kw_only=True):
    budget_tokens: int | None = None
    clamp: bool = False
    display: str | None = None


class ThinkingConfig(_ThinkingConfigOptions, frozen=True):
    """How the model should reason. Made by the class methods. `display` (`summarized`, `omitted`) says what of it is shown."""

    mode: Literal["off", "budget", "adaptive", "auto"]

    @classmethod
    def off(cls, *, display: str | None = None) -> ThinkingConfig:
        """No thinking, in the form the model knows; a problem where the model cannot be without."""
        return cls("off", display=display)

    @classmethod
    def budget(cls, tokens: int, clamp: bool = False, *, display: str | None = None) -> ThinkingConfig:
        """At most `tokens` of thinking, 1024 or more and below max_tokens; 0 is `off()`. `clamp=True` moves it into that range."""
        return cls.off(display=display) if tokens == 0 else cls("budget", budget_tokens=tokens, clamp=clamp, display=display)

    @classmethod
    def adaptive(cls, *, display: str | None = None) -> ThinkingConfig:
        """As much as the model sees fit; `Request.effort` guides it."""
        return cls("adaptive", display=display)

    @classmethod
    def auto(cls, *, display: str | None = None) -> ThinkingConfig:
        """Adaptive where the model is, else a clamped budget chosen by effort."""
        return cls("auto", display=display)


class OutputFormat(Value, frozen=True):
    """The answer must be JSON of this schema. `name` is for dialects that want one."""

    schema: dict[str, Any]
    name: str = "output"
    strict: bool = True

    def __post_init__(self) -> None:
        own_dict(self, "schema")

    @classmethod
    def of(cls, type: type[Any], *, name: str = "") -> OutputFormat:
        """The format of a msgspec Struct, a dataclass or a pydantic model; read the answer with `response.parse(type)`. A list or a plain
        type is for the providers that take one: OpenAI wants an object at the top. A choice of types (`A | B`) is a TypeError.

        Objects are closed and all properties required, keywords that providers refuse move into the description. The name, if none is
        given, is the type's in letters, digits, `_` and `-`, at most 64, as the dialects that want one demand.
        """
        from dragoman.schema import output_schema

        return cls(
            output_schema(type),
            name=name or re.sub(r"[^a-zA-Z0-9_-]+", "_", snake_case(getattr(type, "__name__", "")))[:64].strip("_") or "output",
        )


class Tenant(Value, frozen=True):
    """Whom a call is made for, and what may be recorded of it. Both switches concern telemetry only."""

    id: str
    trace_llm_content: bool = False
    langfuse_enabled: bool = True


class TraceInfo(Value, frozen=True):
    """What the caller knows about a call, for telemetry. Never invented, never sent to the provider."""

    conversation_id: str = ""
    user_id: str = ""
    session_id: str = ""
    trace_name: str = ""
    tags: Sequence[str] = []
    tenant: Tenant | None = None

    def __post_init__(self) -> None:
        own_list(self, "tags")


class _RequestOptions(Value, frozen=True, kw_only=True):
    model: str = ""
    system: str | Sequence[Text] = ""
    tools: Sequence[Tool | ProviderTool] = []
    tool_choice: ToolChoice | None = None
    parallel_tools: bool = True
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop_sequences: Sequence[str] = []
    thinking: ThinkingConfig | None = None
    effort: Effort | None = None
    output: OutputFormat | None = None
    cache: CacheMode | None = None
    metadata: dict[str, Any] = {}
    betas: Sequence[str] = []
    extra_headers: dict[str, str] = {}
    extra_body: dict[str, Any] = {}
    hoist_system: Literal["leading", "all"] = "leading"
    foreign_thinking: Literal["drop", "text"] = "drop"
    trace: TraceInfo | None = None


class Request(_RequestOptions, frozen=True):
    """One call: the conversation so far and what is asked. A bare string is a user message, alone or among the messages; one Message
    may stand for a list of one.
    """

    if TYPE_CHECKING:
        messages: Sequence[Message]

        def __init__(
            self,
            messages: str | Message | Iterable[Message | str],
            *,
            model: str = "",
            system: str | Sequence[Text] = "",
            tools: Sequence[Tool | ProviderTool] = (),
            tool_choice: ToolChoice | None = None,
            parallel_tools: bool = True,
            max_tokens: int | None = None,
            temperature: float | None = None,
            top_p: float | None = None,
            top_k: int | None = None,
            stop_sequences: Sequence[str] = (),
            thinking: ThinkingConfig | None = None,
            effort: Effort | None = None,
            output: OutputFormat | None = None,
            cache: CacheMode | None = None,
            metadata: dict[str, Any] = {},  # noqa: B006
            betas: Sequence[str] = (),
            extra_headers: dict[str, str] = {},  # noqa: B006
            extra_body: dict[str, Any] = {},  # noqa: B006
            hoist_system: Literal["leading", "all"] = "leading",
            foreign_thinking: Literal["drop", "text"] = "drop",
            trace: TraceInfo | None = None,
        ) -> None: ...
    else:
        messages: str | Sequence[Message | str]

    def __post_init__(self) -> None:
        given: str | Message | Iterable[Message | str] = self.messages
        if isinstance(given, str):
            messages: list[Any] = [Message("user", given)]
        elif isinstance(given, Message | Mapping):  # a dict is no list of its keys
            messages = [given]
        else:
            messages = list(given)
            for kind in set(map(type, messages)):  # a long history is looked at four times as fast
                if issubclass(kind, str):
                    messages = [Message("user", m) if isinstance(m, str) else m for m in messages]
                    break
        force_setattr(self, "messages", messages)
        own_list(self, "system", "tools", "stop_sequences", "betas")
        own_dict(self, "metadata", "extra_headers", "extra_body")

    def replace(self, **changes: Any) -> Request:
        """A copy with these fields changed. Raises TypeError for a name that is no field."""
        return replace(self, **changes)
