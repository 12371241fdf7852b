"""A model seen with other types of weights, or with more metadata; nothing is made before it is asked for.

`--weights q8` loads a model through such a view, and `tokenglass convert` writes one down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tokenglass.formats.blocks import BlockType, dequantize
from tokenglass.formats.quantise import quantise
from tokenglass.formats.tensor_file import ModelSource, TensorInfo, Value

WeightForm = Literal["f32", "bf16", "q8", "q4"]
WEIGHT_FORMS: tuple[WeightForm, ...] = ("f32", "bf16", "q8", "q4")
_TYPES = {"f32": BlockType.F32, "bf16": BlockType.BF16, "q8": BlockType.Q8_0, "q4": BlockType.Q4_1}
_SENSITIVE = ("token_embd.weight", "output.weight")  # their rows are looked up or compared: 8 bits even in q4
_CHUNK_VALUES = 1 << 22  # made at a time: 16 MB as floats


class ModelView(ModelSource):
    """`source` with its matrices in the form `weights` (None: as they are) and `metadata` added to its own.

    Vectors stay as they are, and so do rows that are not whole blocks and types that cannot be unpacked.
    q4 is Q4_1, with the embedding and the head in Q8_0. Closing the view closes the source.
    """

    def __init__(
        self,
        source: ModelSource,
        *,
        weights: WeightForm | None = None,
        metadata: Mapping[str, Value] = MappingProxyType({}),
    ) -> None:
        self.path = source.path
        self.metadata = MappingProxyType({**source.metadata, **metadata})
        self.left_out = source.left_out
        self._source = source
        self.tensors = MappingProxyType({name: _seen(info, weights) for name, info in source.tensors.items()})

    def raw(self, name: str) -> NDArray[np.uint8]:
        """The tensor's bytes, uint8 [num_bytes]: the source's own, or made now and the caller's to keep."""
        info, stored = self._info(name), self._source.tensors[name]
        raw = self._source.raw(name)
        if info.type is stored.type:
            return raw
        rows, cols = info.shape
        made = np.empty(info.num_bytes, np.uint8)
        step = max(1, _CHUNK_VALUES // cols)
        from_row, to_row = stored.num_bytes // rows, info.num_bytes // rows
        for start in range(0, rows, step):
            end = min(start + step, rows)
            values = dequantize(stored.type, raw[start * from_row : end * from_row], (end - start, cols))
            made[start * to_row : end * to_row] = quantise(info.type, values)
        return made

    def release(self, name: str, num_bytes: int | None = None) -> None:
        """Drops the tensor's pages, where the source can."""
        is_made = self._info(name).type is not self._source.tensors[name].type
        self._source.release(name, None if is_made else num_bytes)

    def close(self) -> None:
        """Closes the source."""
        self._source.close()

    def notes(self) -> list[str]:
        """What was made of the weights, a line for each pair of types."""
        changes = Counter(
            (self._source.tensors[name].type, info.type)
            for name, info in self.tensors.items()
            if info.type is not self._source.tensors[name].type
        )
        return [f"{n} tensors of type {a.name} are loaded as {b.name}" for (a, b), n in changes.items()]


def _seen(info: TensorInfo, weights: WeightForm | None) -> TensorInfo:
    if weights is None or len(info.shape) != 2 or not info.type.is_supported:
        return info
    target = _TYPES[weights]
    if weights == "q4" and info.name in _SENSITIVE:
        target = BlockType.Q8_0
    if info.name == "position_embd.weight":  # small, and added as it is
        target = BlockType.F32
    if target is info.type or info.shape[1] % target.block_len:
        return info
    return TensorInfo(info.name, info.shape, target, 0, target.num_bytes(info.shape))
