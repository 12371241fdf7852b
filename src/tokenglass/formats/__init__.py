"""Model files: named tensors and metadata. `tensor_file.py` says what every kind gives; `gguf.py` is one."""

from tokenglass.formats.blocks import BLOCK_TYPES, BlockType, dequantize
from tokenglass.formats.gguf import GGUFFile
from tokenglass.formats.open_model import is_folder_model, open_model
from tokenglass.formats.strings import StringArray
from tokenglass.formats.tensor_file import ModelSource, TensorFile, TensorInfo

__all__ = [
    "BLOCK_TYPES",
    "BlockType",
    "GGUFFile",
    "ModelSource",
    "StringArray",
    "TensorFile",
    "TensorInfo",
    "dequantize",
    "is_folder_model",
    "open_model",
]
