"""A model seen with its matrices in another form."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.tiny_gguf import write_gguf
from tokenglass.formats import BlockType, GGUFFile
from tokenglass.formats.view import ModelView, WeightForm

RNG = np.random.default_rng(0)
WEIGHTS = {
    "token_embd.weight": RNG.standard_normal((9, 64), np.float32),
    "blk.0.attn_q.weight": RNG.standard_normal((40, 64), np.float32),
    "blk.0.attn_q.bias": RNG.standard_normal(64, np.float32),
    "position_embd.weight": RNG.standard_normal((7, 64), np.float32),
    "odd.weight": RNG.standard_normal((7, 33), np.float32),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_gguf(tmp_path / "m.gguf", {"a": 1}, {name: ("F32", x) for name, x in WEIGHTS.items()})


@pytest.mark.parametrize(
    ("form", "types", "error"),
    [
        (None, "F32 F32 F32 F32 F32", 0),
        ("f32", "F32 F32 F32 F32 F32", 0),
        ("bf16", "BF16 BF16 F32 F32 BF16", 0.02),
        ("q8", "Q8_0 Q8_0 F32 F32 F32", 0.02),
        ("q4", "Q8_0 Q4_1 F32 F32 F32", 0.3),
    ],
)
def test_each_form_has_its_types_and_stays_close(
    path: Path, form: WeightForm | None, types: str, error: float
) -> None:
    with ModelView(GGUFFile.open(path), weights=form, metadata={"b": "more"}) as view:
        assert [info.type.name for info in view.tensors.values()] == types.split()
        assert dict(view.metadata) == {"a": 1, "b": "more"}
        for name, values in WEIGHTS.items():
            assert len(view.raw(name)) == view.tensors[name].num_bytes
            assert np.abs(view.floats(name) - values).max() <= error
            view.release(name)
        assert bool(view.notes()) == (form not in (None, "f32"))


def test_a_view_of_a_view_changes_block_types(path: Path) -> None:
    with ModelView(ModelView(GGUFFile.open(path), weights="q4"), weights="f32") as view:
        assert {info.type for info in view.tensors.values()} == {BlockType.F32}
        assert 0 < np.abs(view.floats("blk.0.attn_q.weight") - WEIGHTS["blk.0.attn_q.weight"]).max() < 0.3
        assert view.notes() == [
            "1 tensors of type Q8_0 are loaded as F32", "1 tensors of type Q4_1 are loaded as F32",
        ]  # fmt: skip


def test_many_rows_are_made_in_pieces(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelView(GGUFFile.open(path), weights="q8") as view:
        expected = view.raw("blk.0.attn_q.weight")
        monkeypatch.setattr("tokenglass.formats.view._CHUNK_VALUES", 64 * 7)
        assert np.array_equal(view.raw("blk.0.attn_q.weight"), expected)
