"""A folder's tokenizer as Transformers makes it, behind our own interface.

For folders without a `tokenizer.json`: a bare `vocab.txt`, `merges.txt` or `*.model` does not say how it is
used; the class that the folder names does. Most classes build an object of the `tokenizers` library. Its
description is what a `tokenizer.json` holds, so everything after that is as ever (`tokenizer_json.py`).
"""

from __future__ import annotations

import json
from functools import partial
from importlib import import_module
from pathlib import Path

from tokenglass.errors import ModelFileError
from tokenglass.tokens.settings import read_settings
from tokenglass.tokens.tokenizer import Tokenizer
from tokenglass.tokens.tokenizer_json import check_spec, encoder_of, vocabulary_of


def read_with_transformers(path: Path, *, trust_remote_code: bool = False) -> tuple[Tokenizer, str | None]:
    """The tokenizer of the folder `path`, and the name of its class in Transformers; None: there is no class
    for it, and it is our own reading of the files. trust_remote_code: as for the model.

    ModelFileError: there is no tokenizer, or its class is plain Python: that gives no bytes for a token.
    """
    transformers = import_module("transformers")
    try:
        made = transformers.AutoTokenizer.from_pretrained(
            path, local_files_only=True, trust_remote_code=trust_remote_code
        )
    except Exception:  # noqa: BLE001 - others' code, which may raise anything
        return Tokenizer.from_path(path), None
    name = type(made).__name__
    if getattr(made, "backend_tokenizer", None) is None:
        raise ModelFileError(path, "tokenizer", f"{name} cannot be used here without a tokenizer.json")
    spec, settings = json.loads(made.backend_tokenizer.to_str()), read_settings(path)
    check_spec(path, spec)
    vocabulary = vocabulary_of(path, spec, settings)
    encoder = partial(encoder_of, path, spec, vocabulary.control)
    return Tokenizer(vocabulary, encoder, chat_template=settings.chat_template), name
