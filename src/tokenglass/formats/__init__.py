"""Model files: named tensors and metadata. `gguf.py` opens, `header.py` checks, `blocks.py` unpacks."""

from tokenglass.formats.blocks import BLOCK_TYPES, BlockType, dequantize
from tokenglass.formats.gguf import GGUFFile
from tokenglass.formats.header import TensorInfo
from tokenglass.formats.strings import StringArray

__all__ = ["BLOCK_TYPES", "BlockType", "GGUFFile", "StringArray", "TensorInfo", "dequantize"]
