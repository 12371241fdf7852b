"""Every architecture: the same bits as its numpy twin, on every instruction set, however it is cut."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.models.support import all_logits, bind
from tests.support.tiny_models import write_tiny_model
from tokenglass import kernels
from tokenglass.kernels import reference
from tokenglass.models.registry import ARCHITECTURES

IDS = [int(i) for i in np.random.default_rng(7).integers(3, 300, 40)]


@pytest.fixture(scope="module", params=sorted(ARCHITECTURES))
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("twins") / "m.gguf", request.param)


@pytest.fixture(scope="module")
def twin(path: Path) -> NDArray[np.float32]:
    logits = all_logits(bind(path, ops=reference), IDS, chunk=40)
    assert np.isfinite(logits).all()
    return logits


@pytest.mark.parametrize("isa", kernels.runnable_isas())
@pytest.mark.parametrize("chunk", [1, 17, 40])
def test_the_default_mode_gives_the_twins_bits(
    path: Path, twin: NDArray[np.float32], isa: str, chunk: int
) -> None:
    assert np.array_equal(all_logits(bind(path, isa=isa), IDS, chunk=chunk), twin)


def test_the_exact_mode_gives_the_twins_bits(path: Path) -> None:
    fast, twin = (bind(path, exact=True, kv="f32", ops=ops) for ops in (kernels, reference))
    assert np.array_equal(all_logits(fast, IDS[:20], chunk=9), all_logits(twin, IDS[:20]))


def test_floats_are_near_8_bits(tmp_path: Path, path: Path) -> None:
    other = write_tiny_model(tmp_path / "m.gguf", bind(path).config.architecture, weight_type="F32")
    a, b = (all_logits(bind(p), IDS[:20]) for p in (path, other))
    assert np.abs(a - b).max() < 0.2 * np.abs(a).max()
