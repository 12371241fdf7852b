"""Writes tensors as a safetensors file: what `safetensors.py` reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tokenglass.formats.whole_file import whole_file

_ALIGNMENT = 8


@dataclass(frozen=True)
class Outgoing:
    """A tensor to be written: its bytes are made when it is its turn."""

    name: str
    dtype: str  # safetensors' name: F32, BF16, …
    shape: tuple[int, ...]
    num_bytes: int
    raw: Callable[[], NDArray[np.uint8]]


def write_safetensors(path: Path, tensors: Mapping[str, NDArray[np.float32]]) -> None:
    """Float32 arrays by name. TokenglassError: it cannot be written."""

    def outgoing(name: str, values: NDArray[np.float32]) -> Outgoing:
        raw = np.ascontiguousarray(values, "<f4").reshape(-1).view(np.uint8)
        return Outgoing(name, "F32", values.shape, raw.size, lambda: raw)

    write_outgoing(path, [outgoing(name, values) for name, values in tensors.items()])


def write_outgoing(
    path: Path, tensors: Iterable[Outgoing], *, progress: Callable[[int], None] = lambda _: None
) -> None:
    """Tensors one after the other; `progress` hears of the bytes written. TokenglassError: it cannot."""
    tensors = list(tensors)
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for tensor in tensors:
        offsets = [end, end + tensor.num_bytes]
        header[tensor.name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": offsets}
        end = offsets[1]
    raw = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    raw += b" " * (-len(raw) % _ALIGNMENT)
    with whole_file(path) as file:
        file.write(len(raw).to_bytes(8, "little") + raw)
        for tensor in tensors:
            file.write(tensor.raw().data)
            progress(tensor.num_bytes)
