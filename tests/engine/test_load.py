from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.tiny_llama import write_tiny_llama
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
