"""A whole repository of a hub as a model: `OWNER/NAME`, as tutorials write it.

    Qwen/Qwen2.5-0.5B-Instruct  ->  models/Qwen--Qwen2.5-0.5B-Instruct/   config.json, model.safetensors, …

Of the weights safetensors are taken, and a PyTorch checkpoint only where there are none. A repository of GGUF
files holds many models: there the file must be named (`catalogue.unlisted`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tokenglass.errors import DownloadError
from tokenglass.hub.catalogue import Entry, ModelFile, stored_name
from tokenglass.hub.fetch import is_offline
from tokenglass.hub.sources import sources_for
from tokenglass.hub.store import read_receipt

SETTINGS = re.compile(
    r"(generation_|tokenizer_)?config\.json|tokenizer\.(json|model)|(special_tokens_map|added_tokens|vocab)\.json"
    r"|chat_template\.jinja|vocab\.txt|merges\.txt|spiece\.model|sentencepiece\.bpe\.model|[\w-]+\.tiktoken"
)
WEIGHTS = (
    re.compile(r"model(-\d+-of-\d+)?\.safetensors|model\.safetensors\.index\.json"),
    re.compile(r"pytorch_model(-\d+-of-\d+)?\.bin|pytorch_model\.bin\.index\.json"),
)


def repository_entry(words: str, store: Path, *, source: str | None = None) -> Entry | None:
    """The entry for `OWNER/NAME`: its files as the receipt has them where it is stored, else as a hub lists
    them. None for other words. ParameterError: `source` is none; DownloadError: there is no model in it.
    """
    stored_as = stored_name(words)
    if stored_as is None:
        return None
    receipt = read_receipt(store, stored_as) if (store / stored_as).is_dir() else None
    names = list(receipt.files) if receipt else _needed(words, _listed(words, stored_as, source))
    return _entry(words, stored_as, names, source)


def _entry(words: str, stored_as: str, names: Iterable[str], source: str | None) -> Entry:
    """Another hub may give this name to somebody else, so ModelScope is asked only when it is named."""
    files = tuple(map(ModelFile, names))
    on_modelscope = words if source == "modelscope" else None
    return Entry(name=words, stored_as=stored_as, files=files, hub=words, modelscope=on_modelscope)


def _listed(words: str, stored_as: str, source: str | None) -> list[str]:
    if is_offline():
        raise DownloadError(f"{words} is not here and downloads are switched off")
    place = sources_for(_entry(words, stored_as, ("config.json", "model.safetensors"), source), source)[0]
    return place.listing(words)


def _needed(words: str, listed: list[str]) -> list[str]:
    """The settings, the tokenizer and one form of the weights. DownloadError: they make no model."""
    listed = [*dict.fromkeys(listed)]
    weights = next(filter(None, ([n for n in listed if form.fullmatch(n)] for form in WEIGHTS)), [])
    settings = [name for name in listed if SETTINGS.fullmatch(name)]
    if "config.json" in settings and len(settings) + len(weights) > 1:
        return settings + weights
    if files := [name for name in listed if name.endswith(".gguf")]:
        remedy = f"Name one of them: {', '.join(f'{words}/{name}' for name in files[:8])}"
        raise DownloadError(f"{words} holds GGUF files, each of them a model", remedy=remedy)
    raise DownloadError(f"{words} holds no model that we know to read")
