"""How the hosts of this protocol differ, as data: one row per dialect, and one per name that `connect` knows.

Strategy. Nothing in this wire asks "is this host X": it asks the row. A row says what a host was seen to do and names its evidence: a
family of recordings (`recorded: …`, with the request header or field that the host answered with 200) or a published package that
was read (`package version: file`). A host without evidence of its own uses `generic`, which is what most servers of open models share.

What a host *sends* needs no row where it can be told from the bytes alone (where usage comes, which key holds the reasoning, whether
`[DONE]` comes): the decoder accepts all of it from everyone.
"""

from __future__ import annotations

import re
from typing import Final, Literal

import msgspec

__all__ = ["CONNECT", "DIALECTS", "Dialect", "Endpoint", "dialect_of"]


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """One row: what a host takes and how its numbers are meant. The defaults are those of `generic`."""

    name: str
    label: str
    """How the host is called in error texts."""
    provider: str
    """The vendor in `Origin.provider` and telemetry."""
    evidence: tuple[str, ...]

    # ---- the request
    max_tokens: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    developer_models: str = ""
    """A pattern for the beginning of model ids whose system messages are sent with the role `developer`; `""`: none."""
    stream_usage: bool = True
    """Takes `stream_options: {"include_usage": true}`; else usage comes without asking."""
    required: Literal["required", "any"] = "required"
    """The word for the tool choice "some tool"."""
    thinking: Literal["effort", "object", "switch", "template"] = "effort"
    """How a `ThinkingConfig` is written: `reasoning_effort`; `reasoning: {…}`; `thinking: {"type": "enabled"}`;
    `chat_template_kwargs: {"enable_thinking": …}`.
    """
    efforts: dict[str, str] = {}
    """Words for `reasoning_effort` that differ from ours."""
    top_k: bool = True
    user: bool = True
    """Takes `user` (from `metadata["user_id"]`)."""
    metadata: bool = False
    """Takes a `metadata` object."""

    # ---- the conversation
    thinking_field: Literal["reasoning_content", "reasoning", "content", ""] = "reasoning_content"
    """Where an assistant turn's own reasoning is sent back; `""`: nowhere, it is left out."""
    thinking_details: bool = False
    """Takes `reasoning_details` back."""
    refusal: bool = False
    """Takes `refusal` in an assistant turn back; else it is sent as content."""
    annotations: bool = False
    """Takes `annotations` in an assistant turn back."""
    empty_content: Literal["null", "empty", "absent"] = "null"
    """How the content of an assistant turn is written that has only calls."""
    tool_media: Literal["taken", "unseen", "refused"] = "unseen"
    """Whether a tool message may hold images and the like. `unseen`: sent, with a notice; `refused`: moved to the next user message."""
    file_urls: bool = False
    """A `file` part may name a URL."""
    cache_marks: bool = False
    """Takes `cache_control` marks on text parts and tools."""
    id_limit: int = 64
    """Characters that a tool call's id may have."""
    id_pattern: str = r"[\x21-\x7e]+"
    """What an id must match as a whole."""

    takes_made_ids: bool = False
    """Calls came without ids, yet the host takes the ids that we made for them."""

    # ---- the answer
    outside_models: str = ""
    """A pattern for the beginning of model ids whose reasoning is never part of `completion_tokens`, whatever the total says."""
    hidden_reasoning: bool = False
    """Reasoning is counted in `total_tokens` only."""
    end_without_finish: bool = False
    """A stream may end with `[DONE]` and no finish reason."""

    def role_of_system(self, model: str) -> Literal["system", "developer"]:
        """The role of system messages to this model."""
        return "developer" if self.developer_models and re.match(self.developer_models, model) else "system"

    def reasons_outside(self, model: str) -> bool:
        """Whether this model's reasoning is known to be counted outside `completion_tokens`."""
        return bool(self.outside_models) and re.match(self.outside_models, model) is not None


_LITELLM = "litellm 1.110.2: llms/"

DIALECTS: Final[dict[str, Dialect]] = {
    row.name: row
    for row in (
        Dialect(
            name="generic",
            label="OpenAI-compatible server",
            provider="openai-compatible",
            evidence=("recorded: doubleword, venice, huggingface, avian, gpustack, databricks: what they have in common",),
        ),
        Dialect(
            name="openai",
            label="OpenAI",
            provider="openai",
            evidence=(
                "recorded: api.openai.com (max_completion_tokens, stream_options, developer, annotations, audio, content null)",
                "openai 3.57.0: types/chat/completion_create_params.py (max_tokens deprecated), types/shared/reasoning_effort.py",
            ),
            max_tokens="max_completion_tokens",
            developer_models=r"(?:o\d|gpt-5)",
            top_k=False,
            metadata=True,
            thinking_field="",
            refusal=True,
            annotations=True,
            tool_media="refused",
            id_limit=40,
        ),
        Dialect(
            name="azure",
            label="Azure OpenAI",
            provider="azure",
            evidence=("recorded: azure (max_completion_tokens, stream_options, content empty, prompt_filter_results first)",),
            max_tokens="max_completion_tokens",
            developer_models=r"(?:o\d|gpt-5)",
            top_k=False,
            metadata=True,
            thinking_field="",
            refusal=True,
            annotations=True,
            empty_content="empty",
            tool_media="refused",
            id_limit=40,
        ),
        Dialect(
            name="openrouter",
            label="OpenRouter",
            provider="openrouter",
            evidence=(
                "recorded: openrouter.ai (reasoning, reasoning_details, cache_control, developer, file parts, server_tool_use_details)",
                _LITELLM + "openrouter/chat/transformation.py (effort max is written xhigh)",
            ),
            thinking="object",
            efforts={"max": "xhigh"},
            thinking_field="reasoning",
            thinking_details=True,
            refusal=True,
            annotations=True,
            empty_content="empty",
            file_urls=True,
            cache_marks=True,
        ),
        Dialect(
            name="vercel",
            label="Vercel AI Gateway",
            provider="vercel",
            evidence=("recorded: ai-gateway.vercel.sh (reasoning enabled, reasoning_details, cache_control, content absent, cost)",),
            thinking="object",
            thinking_field="reasoning",
            thinking_details=True,
            empty_content="absent",
            cache_marks=True,
            outside_models=r"google/",
        ),
        Dialect(
            name="groq",
            label="Groq",
            provider="groq",
            evidence=(
                "recorded: api.groq.com (max_tokens, usage in the finish chunk and after, content absent, event: error)",
                _LITELLM + "groq/chat/transformation.py (base URL, GROQ_API_KEY)",
            ),
            top_k=False,
            thinking_field="reasoning",
            empty_content="absent",
        ),
        Dialect(
            name="mistral",
            label="Mistral",
            provider="mistral",
            evidence=(
                "recorded: api.mistral.ai (no stream_options, thinking in content lists, tool_choice any, ids of 9, audio outside prompt)",
            ),
            stream_usage=False,
            required="any",
            top_k=False,
            user=False,
            thinking_field="content",
            empty_content="empty",
            id_limit=9,
            id_pattern=r"[a-zA-Z0-9]{9}",
        ),
        Dialect(
            name="deepseek",
            label="DeepSeek",
            provider="deepseek",
            evidence=(
                "recorded: api.deepseek.com (thinking enabled and disabled, reasoning_content sent back, prompt_cache_hit_tokens)",
                _LITELLM + "deepseek/chat/transformation.py (reasoning_content must be sent back)",
            ),
            thinking="switch",
            top_k=False,
        ),
        Dialect(
            name="xai",
            label="xAI",
            provider="xai",
            evidence=(
                "recorded: api.x.ai (max_completion_tokens, reasoning outside completion_tokens, cost_in_usd_ticks, error as a string)",
                _LITELLM + "xai/chat/transformation.py",
            ),
            max_tokens="max_completion_tokens",
            top_k=False,
            thinking_field="",
        ),
        Dialect(
            name="zai",
            label="Z.ai",
            provider="zai",
            evidence=("recorded: api.z.ai (thinking enabled, reasoning_content sent back, request_id in the body)",),
            thinking="switch",
        ),
        Dialect(
            name="moonshot",
            label="Moonshot",
            provider="moonshot",
            evidence=("recorded: moonshotai", _LITELLM + "moonshot/chat/transformation.py (reasoning_content must be sent back)"),
            top_k=False,
        ),
        Dialect(
            name="google",
            label="Google",
            provider="google",
            evidence=("recorded: generativelanguage.googleapis.com (calls without id, made ids taken, thought_signature, total ≠ sum)",),
            empty_content="absent",
            thinking_field="",
            takes_made_ids=True,
            hidden_reasoning=True,
        ),
        Dialect(
            name="cerebras",
            label="Cerebras",
            provider="cerebras",
            evidence=("recorded: api.cerebras.ai (max_tokens, no [DONE], time_info)", "litellm 1.110.2: llms/cerebras/chat.py"),
            top_k=False,
            thinking_field="",
        ),
        Dialect(
            name="perplexity",
            label="Perplexity",
            provider="perplexity",
            evidence=(
                "recorded: api.perplexity.ai (CRLF, no [DONE], usage and search_results in every chunk, cost.total_cost)",
                _LITELLM + "perplexity/chat/transformation.py",
            ),
            thinking_field="",
        ),
        Dialect(
            name="together",
            label="Together",
            provider="together",
            evidence=(
                "recorded: api.together.xyz (finish eos, text beside delta)",
                _LITELLM + "together_ai/chat/transformation.py (reasoning_content sent back)",
            ),
        ),
        Dialect(
            name="fireworks",
            label="Fireworks",
            provider="fireworks",
            evidence=(_LITELLM + "fireworks_ai/chat/transformation.py (top_k, stream_options, reasoning_effort)",),
        ),
        Dialect(
            name="ollama",
            label="Ollama",
            provider="ollama",
            evidence=("recorded: ollama.com (the wording of a context overflow)",),
        ),
        Dialect(
            name="vllm",
            label="vLLM",
            provider="vllm",
            evidence=(
                "recorded: localhost:8000, venice, gpustack (stop_reason, prompt_token_ids, enable_thinking)",
                _LITELLM + "hosted_vllm/chat/transformation.py (reasoning_content sent back)",
            ),
            thinking="template",
            tool_media="taken",
        ),
        Dialect(
            name="llamacpp",
            label="llama.cpp",
            provider="llamacpp",
            evidence=(
                "recorded: llamacpp, localhost:8080 (max_tokens, content absent, reasoning_content sent back, an image in a tool message)",
            ),
            thinking="template",
            empty_content="absent",
            tool_media="taken",
        ),
        Dialect(
            name="lmstudio",
            label="LM Studio",
            provider="lmstudio",
            evidence=(_LITELLM + "lm_studio/chat/transformation.py (LM_STUDIO_API_KEY, response_format json_schema)",),
        ),
        Dialect(
            name="snowflake",
            label="Snowflake Cortex",
            provider="snowflake",
            evidence=("recorded: snowflakecomputing.com (no finish_reason in streams, reasoning_details, content null)",),
            thinking="object",
            thinking_field="",
            thinking_details=True,
            end_without_finish=True,
        ),
    )
}
"""Every dialect by its name."""


def dialect_of(name: str | Dialect) -> Dialect:
    """The row of this name, or the row itself (a caller's own). Raises ConfigError listing the names."""
    if isinstance(name, Dialect):
        return name
    try:
        return DIALECTS[name]
    except KeyError:
        from dragoman.errors import ConfigError

        raise ConfigError(f"unknown OpenAI chat dialect {name!r}; known are {', '.join(sorted(DIALECTS))}") from None


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """What `connect("<name>:<model>")` needs to know of one host of this protocol."""

    dialect: str
    base_url: str = ""
    """Default base URL; `/chat/completions` is appended. `""`: there is none, one must be given."""
    keys: tuple[str, ...] = ()
    """Environment variables that may hold the key, the first that is set wins."""
    urls: tuple[str, ...] = ()
    """Environment variables that may hold the base URL, the first that is set wins over the default."""
    url_suffix: str = ""
    """Appended to a base URL from the environment that does not hold it: those of Azure and local servers often name the host only."""
    header: Literal["authorization", "api-key"] = "authorization"
    """Where the key goes: `Authorization: Bearer <key>` or `api-key: <key>`."""
    key_required: bool = True


CONNECT: Final[dict[str, Endpoint]] = {
    "openai": Endpoint(
        dialect="openai",
        base_url="https://api.openai.com/v1",
        keys=("DRAGOMAN_OPENAI_API_KEY", "OPENAI_API_KEY"),
        urls=("DRAGOMAN_OPENAI_BASE_URL", "OPENAI_BASE_URL"),
    ),
    "azure": Endpoint(
        dialect="azure",
        keys=("DRAGOMAN_AZURE_API_KEY", "AZURE_OPENAI_API_KEY"),
        urls=("DRAGOMAN_AZURE_BASE_URL", "AZURE_OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT"),
        url_suffix="/openai/v1",
        header="api-key",
    ),
    "openrouter": Endpoint(
        dialect="openrouter",
        base_url="https://openrouter.ai/api/v1",
        keys=("DRAGOMAN_OPENROUTER_API_KEY", "OPENROUTER_API_KEY"),
        urls=("DRAGOMAN_OPENROUTER_BASE_URL", "OPENROUTER_BASE_URL"),
    ),
    "vercel": Endpoint(
        dialect="vercel",
        base_url="https://ai-gateway.vercel.sh/v1",
        keys=("DRAGOMAN_VERCEL_API_KEY", "AI_GATEWAY_API_KEY", "VERCEL_OIDC_TOKEN"),
        urls=("DRAGOMAN_VERCEL_BASE_URL",),
    ),
    "groq": Endpoint(
        dialect="groq",
        base_url="https://api.groq.com/openai/v1",
        keys=("DRAGOMAN_GROQ_API_KEY", "GROQ_API_KEY"),
        urls=("DRAGOMAN_GROQ_BASE_URL", "GROQ_BASE_URL"),
    ),
    "mistral": Endpoint(
        dialect="mistral",
        base_url="https://api.mistral.ai/v1",
        keys=("DRAGOMAN_MISTRAL_API_KEY", "MISTRAL_API_KEY"),
        urls=("DRAGOMAN_MISTRAL_BASE_URL", "MISTRAL_BASE_URL"),
    ),
    "deepseek": Endpoint(
        dialect="deepseek",
        base_url="https://api.deepseek.com/v1",
        keys=("DRAGOMAN_DEEPSEEK_API_KEY", "DEEPSEEK_API_KEY"),
        urls=("DRAGOMAN_DEEPSEEK_BASE_URL", "DEEPSEEK_BASE_URL"),
    ),
    "xai": Endpoint(
        dialect="xai",
        base_url="https://api.x.ai/v1",
        keys=("DRAGOMAN_XAI_API_KEY", "XAI_API_KEY"),
        urls=("DRAGOMAN_XAI_BASE_URL", "XAI_BASE_URL"),
    ),
    "zai": Endpoint(
        dialect="zai",
        base_url="https://api.z.ai/api/paas/v4",
        keys=("DRAGOMAN_ZAI_API_KEY", "ZAI_API_KEY"),
        urls=("DRAGOMAN_ZAI_BASE_URL", "ZAI_BASE_URL"),
    ),
    "moonshot": Endpoint(
        dialect="moonshot",
        base_url="https://api.moonshot.ai/v1",
        keys=("DRAGOMAN_MOONSHOT_API_KEY", "MOONSHOT_API_KEY"),
        urls=("DRAGOMAN_MOONSHOT_BASE_URL", "MOONSHOT_BASE_URL"),
    ),
    "together": Endpoint(
        dialect="together",
        base_url="https://api.together.xyz/v1",
        keys=("DRAGOMAN_TOGETHER_API_KEY", "TOGETHER_API_KEY"),
        urls=("DRAGOMAN_TOGETHER_BASE_URL", "TOGETHER_BASE_URL"),
    ),
    "fireworks": Endpoint(
        dialect="fireworks",
        base_url="https://api.fireworks.ai/inference/v1",
        keys=("DRAGOMAN_FIREWORKS_API_KEY", "FIREWORKS_API_KEY"),
        urls=("DRAGOMAN_FIREWORKS_BASE_URL", "FIREWORKS_BASE_URL"),
    ),
    "perplexity": Endpoint(
        dialect="perplexity",
        base_url="https://api.perplexity.ai",
        keys=("DRAGOMAN_PERPLEXITY_API_KEY", "PERPLEXITY_API_KEY", "PERPLEXITYAI_API_KEY"),
        urls=("DRAGOMAN_PERPLEXITY_BASE_URL", "PERPLEXITY_BASE_URL"),
    ),
    "cerebras": Endpoint(
        dialect="cerebras",
        base_url="https://api.cerebras.ai/v1",
        keys=("DRAGOMAN_CEREBRAS_API_KEY", "CEREBRAS_API_KEY"),
        urls=("DRAGOMAN_CEREBRAS_BASE_URL", "CEREBRAS_BASE_URL"),
    ),
    "ollama": Endpoint(
        dialect="ollama",
        base_url="http://localhost:11434/v1",
        keys=("DRAGOMAN_OLLAMA_API_KEY", "OLLAMA_API_KEY"),
        urls=("DRAGOMAN_OLLAMA_BASE_URL", "OLLAMA_BASE_URL"),
        url_suffix="/v1",
        key_required=False,
    ),
    "vllm": Endpoint(
        dialect="vllm",
        base_url="http://localhost:8000/v1",
        keys=("DRAGOMAN_VLLM_API_KEY", "VLLM_API_KEY"),
        urls=("DRAGOMAN_VLLM_BASE_URL", "VLLM_BASE_URL"),
        url_suffix="/v1",
        key_required=False,
    ),
    "llamacpp": Endpoint(
        dialect="llamacpp",
        base_url="http://localhost:8080/v1",
        keys=("DRAGOMAN_LLAMACPP_API_KEY", "LLAMA_API_KEY"),
        urls=("DRAGOMAN_LLAMACPP_BASE_URL", "LLAMACPP_BASE_URL"),
        url_suffix="/v1",
        key_required=False,
    ),
    "lmstudio": Endpoint(
        dialect="lmstudio",
        base_url="http://localhost:1234/v1",
        keys=("DRAGOMAN_LMSTUDIO_API_KEY", "LM_STUDIO_API_KEY"),
        urls=("DRAGOMAN_LMSTUDIO_BASE_URL", "LM_STUDIO_API_BASE"),
        url_suffix="/v1",
        key_required=False,
    ),
}
"""The names of `connect` that speak this protocol."""
