"""Architecture names as files write them -> the class that runs them. A new architecture is one file and one
row here.
"""

from __future__ import annotations

from tokenglass.errors import ModelFileError
from tokenglass.formats import ModelSource
from tokenglass.models.llama import Llama

ARCHITECTURES = {"llama": Llama}
ENCODERS = {"bert", "nomic-bert", "jina-bert-v2", "t5encoder"}


def architecture_of(file: ModelSource) -> type[Llama]:
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
            file.path, "general.architecture", f"{name} is not supported yet", remedy=f"Supported: {known}"
        )
    return ARCHITECTURES[name]
