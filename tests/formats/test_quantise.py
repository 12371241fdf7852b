"""Blocks made of floats, read back by the `gguf` package; the error stays within half a step."""

from __future__ import annotations

import gguf
import numpy as np
import pytest

from tokenglass.formats import BlockType
from tokenglass.formats.quantise import quantise

pytestmark = pytest.mark.filterwarnings("error")
# half a step, as a share of the largest value or of the range, and what float16 scales lose
STEPS = {"F32": 0.0, "BF16": 2.0**-8, "F16": 2.0**-11, "Q8_0": 0.505 / 127, "Q4_1": 0.51 * 2 / 15}


@pytest.mark.parametrize("name", [*STEPS, "Q4_0"])
def test_values_come_back_within_half_a_step(name: str) -> None:
    values = np.random.default_rng(0).standard_normal((40, 64), np.float32)
    values[3, :32], values[4, :32] = 0, 1.5  # blocks without a range
    raw = quantise(BlockType[name], values)
    shape = gguf.quant_shape_to_byte_shape(values.shape, gguf.GGMLQuantizationType[name])
    back = gguf.quants.dequantize(raw.reshape(shape), gguf.GGMLQuantizationType[name])
    groups, error = values.reshape(-1, 32), np.abs(back - values).reshape(-1, 32).max(axis=1)
    # Q4_0 has no code for +8 scales: the far end may be one whole step off
    allowed = STEPS.get(name, 1.01 / 8) * np.abs(groups).max(axis=1)
    assert (error <= allowed).all()
    assert not back[3, :32].any()


@pytest.mark.parametrize("name", ["F16", "BF16", "Q8_0", "Q4_0", "Q4_1"])
def test_blocks_are_those_of_the_gguf_package_but_for_ties(name: str) -> None:
    values = np.random.default_rng(1).standard_normal((64, 256), np.float32)
    ours, kind = quantise(BlockType[name], values), gguf.GGMLQuantizationType[name]
    theirs = gguf.quants.quantize(values, kind)
    a, b = (
        gguf.quants.dequantize(raw.reshape(theirs.view(np.uint8).shape), kind)
        for raw in (ours, theirs.view(np.uint8))
    )
    assert (a != b).mean() < 0.02


def test_what_is_not_finite_stays_so_and_warns_nobody() -> None:
    values = np.array([[np.inf, -np.inf, np.nan, 3.4e38] + [0.0] * 28], np.float32)
    for name in ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1"):
        assert quantise(BlockType[name], values).size == BlockType[name].num_bytes(values.shape)
    back = quantise(BlockType.BF16, values).view(np.uint16)[:3].tolist()
    assert back[:2] == [0x7F80, 0xFF80]
    assert back[2] & 0x7FFF > 0x7F80


def test_half_blocks_and_other_types_are_refused() -> None:
    with pytest.raises(ValueError, match="no Q8_0 of rows of 33"):
        quantise(BlockType.Q8_0, np.zeros((2, 33), np.float32))
    with pytest.raises(ValueError, match="no Q4_K"):
        quantise(BlockType.Q4_K, np.zeros((2, 256), np.float32))
