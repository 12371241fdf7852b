"""From a path to an open model: a GGUF file or a Hugging Face folder, whichever is there."""

from __future__ import annotations

import os
from pathlib import Path

from tokenglass.formats.gguf import GGUFFile
from tokenglass.formats.hf_folder import CONFIG, HFFolder
from tokenglass.formats.tensor_file import ModelSource


def is_folder_model(path: Path) -> bool:
    """Whether `path` is a folder that has a config.json."""
    return os.path.isfile(path / CONFIG)  # False for every name that no file can have


def open_model(path: Path | str) -> ModelSource:
    """The model at `path`. ModelFileError: there is none, or a file of it is broken."""
    return HFFolder(path) if is_folder_model(Path(path)) else GGUFFile.open(path)
