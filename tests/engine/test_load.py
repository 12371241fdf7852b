from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.tiny_gguf import Tensor, write_gguf
from tests.support.tiny_llama import tiny_metadata, tiny_weights, write_tiny_llama
from tokenglass.engine import load
from tokenglass.errors import ModelFileError, ParameterError


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"activations": "int4"}, "activations"),
        ({"kv": "q3"}, "kv"),
        ({"context_length": 0}, "context_length"),
        ({"context_length": 513}, "context_length"),
        ({"max_rows": 0}, "max_rows"),
        ({"isa": "mmx"}, "TOKENGLASS_ISA"),
        ({"num_threads": 0}, "num_threads"),
    ],
)
def test_an_option_outside_its_range_is_refused_by_name(
    tiny_model_path: Path, options: dict[str, Any], name: str
) -> None:
    with pytest.raises(ParameterError) as caught:
        load(tiny_model_path, **options)
    assert caught.value.name == name


@pytest.mark.parametrize(("architecture", "said"), [("mamba", "not supported yet"), ("bert", "encoder")])
def test_an_architecture_we_cannot_run_is_named(tmp_path: Path, architecture: str, said: str) -> None:
    path = write_tiny_llama(tmp_path / "m.gguf", metadata={"general.architecture": architecture})
    with pytest.raises(ModelFileError, match=said):
        load(path)


@pytest.mark.parametrize("scaling", ["dynamic", "longrope"])
def test_rotations_that_go_by_the_window_stay_as_trained_unless_more_is_asked_for(
    tmp_path: Path, scaling: str
) -> None:
    """C03: a short text must not run otherwise because a long window was taken by default."""
    metadata = {"rope.scaling.type": scaling, "rope.scaling.original_context_length": 64}
    keys = tiny_metadata() | {f"llama.{key}": value for key, value in metadata.items()}
    tensors: dict[str, Tensor] = {name: ("F32", values) for name, values in tiny_weights().items()}
    if scaling == "longrope":
        tensors |= {f"rope_factors_{x}.weight": ("F32", np.ones(8, np.float32)) for x in ("short", "long")}
    path = write_gguf(tmp_path / "m.gguf", keys, tensors)
    usual = load(path)
    assert (usual.context_length, usual.model.notes) == (64, [])
    longer = load(path, context_length=512)
    assert longer.context_length == 512
    assert [note for note in longer.model.notes if f"longer than in the training: {scaling}" in note]
