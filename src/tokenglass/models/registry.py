"""Architecture names as files write them -> the class that runs them. A new architecture is one file and one
row here.
"""

from __future__ import annotations

from typing import Protocol

from tokenglass.errors import ModelFileError
from tokenglass.formats import ModelSource
from tokenglass.models.decoder import Decoder
from tokenglass.models.gemma3 import Gemma3
from tokenglass.models.gpt2 import GPT2
from tokenglass.models.llama import Llama
from tokenglass.models.phi3 import Phi3
from tokenglass.models.qwen2 import Qwen2
from tokenglass.models.qwen3 import Qwen3
from tokenglass.models.weights import Space, Weights


class Architecture(Protocol):
    """Binds a model of this kind to its weights."""

    def __call__(self, weights: Weights, *, space: Space, vocab: int) -> Decoder: ...


ARCHITECTURES: dict[str, Architecture] = {
    "llama": Llama,
    "smollm3": Llama,
    "qwen2": Qwen2,
    "qwen3": Qwen3,
    "gemma3": Gemma3,
    "phi3": Phi3,
    "gpt2": GPT2,
}
ENCODERS = {"bert", "nomic-bert", "jina-bert-v2", "t5encoder"}


def architecture_of(file: ModelSource) -> Architecture:
    """The class for this file. ModelFileError names an architecture that is not supported."""
    name = file.get("general.architecture", str)
    if name in ENCODERS:
        raise ModelFileError(
            file.path,
            "general.architecture",
            f"{name} is an encoder: it scores no next token and cannot generate",
        )
    if name not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise ModelFileError(
            file.path,
            "general.architecture",
            f"{name} is not supported yet",
            remedy=f"Supported: {known}; any other runs with --engine transformers",
        )
    return ARCHITECTURES[name]
