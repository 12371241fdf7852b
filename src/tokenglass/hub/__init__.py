"""Names to files: `resolve("smollm2")` gives the path of a whole model file. Start at `lookup.py`."""

from tokenglass.hub.catalogue import CATALOGUE, DEFAULT_MODEL, Entry, find
from tokenglass.hub.headers import header_file
from tokenglass.hub.lookup import pull, remove, resolve
from tokenglass.hub.progress import Progress, Stage
from tokenglass.hub.store import Receipt, read_receipt, store_folder
from tokenglass.hub.stored import bytes_of, is_stored, model_name, stored_models, stored_path
from tokenglass.hub.tokenizer_files import rank_file, tokenizer_path

__all__ = [
    "CATALOGUE",
    "DEFAULT_MODEL",
    "Entry",
    "Progress",
    "Receipt",
    "Stage",
    "bytes_of",
    "find",
    "header_file",
    "is_stored",
    "model_name",
    "pull",
    "rank_file",
    "read_receipt",
    "remove",
    "resolve",
    "store_folder",
    "stored_models",
    "stored_path",
    "tokenizer_path",
]
