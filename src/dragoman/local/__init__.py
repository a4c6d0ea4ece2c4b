"""The local provider: a real language model behind the real Messages protocol, with no key and no internet.

`connect("local")` runs llama.cpp's own HTTP server inside this process (extra `local`) and talks to it over loopback, through the same
wire, transport and driver as any other provider. The model, SmolLM2-135M, is a toy: it streams, thinks and calls tools well enough
to try an agent's plumbing, and is wrong about nearly everything else. `model_file` finds or fetches it, `server` runs it, `provider`
joins it to the driver. Any other GGUF file works too.
"""

from __future__ import annotations

from dragoman.local.model_file import SMOLLM2, ModelFile, cache_folder, ensure_model, fetch_model, find_model
from dragoman.local.provider import LocalProvider, local_provider

__all__ = [
    "SMOLLM2",
    "LocalProvider",
    "ModelFile",
    "cache_folder",
    "ensure_model",
    "fetch_model",
    "find_model",
    "local_provider",
]
