"""The sums agree with what the engine allocates, and with numbers that others have published."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.support.hf_folder import write_tiny_folder
from tests.support.tiny_llama import TinyLlama
from tests.support.tiny_models import NUM_LAYERS, write_tiny_model
from tokenglass import kernels
from tokenglass.errors import ModelFileError
from tokenglass.fit import CacheLayers, cache_layers, plan
from tokenglass.fit.plan import MAX_OUTPUTS, MAX_ROWS
from tokenglass.formats import ModelSource, open_model
from tokenglass.formats.view import WEIGHT_FORMS, ModelView
from tokenglass.models.config import read_config
from tokenglass.models.registry import ARCHITECTURES, architecture_of
from tokenglass.models.weights import Space, Weights

GIB = 1 << 30
REAL = [
    "smollm2-135m-instruct-q4_1.gguf",
    "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    "gemma-3-270m-q4_k_m.gguf",
]


class Recording(Weights):
    """Remembers the vectors that are held as they are read: those of norms."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.norms: dict[str, int] = {}

    def vector(self, name: str, length: int) -> np.ndarray[Any, Any]:
        if "norm" in name:
            self.norms[name] = length
        return super().vector(name, length)


class Allocations:
    """Binds a model with kernels that remember what they were asked to hold."""

    def __init__(self, file: ModelSource, *, context: int, kv: str = "f16", num_threads: int = 1) -> None:
        self.matrices: list[kernels.Matrix] = []
        self.small = self.rows = self.tables = 0
        names = {name: getattr(kernels, name) for name in kernels.__all__}
        recording = {"Matrix": self.matrix, "Rows": self.new_rows, "RopeTable": self.table}
        weights = Recording(
            file,
            kernels.cpu(num_threads),
            exact=False,
            ops=SimpleNamespace(**{**names, **recording, "PositionEmbedding": self.positions}),
        )
        space = Space(context, -(-context // 16), kv, MAX_ROWS, MAX_OUTPUTS)
        vocab = file.tensors["token_embd.weight"].shape[0]
        self.model = architecture_of(file)(weights, space=space, vocab=vocab)
        self.small += 4 * sum(weights.norms.values())

    def matrix(self, *arguments: Any) -> kernels.Matrix:
        made = kernels.Matrix(*arguments)
        self.matrices.append(made)
        if arguments[6] is not None:  # the bias, to whole panels
            self.small += 4 * -(-made.rows // 16) * 16
        return made

    def new_rows(self, capacity: int, width: int, *, quantised: bool = False) -> kernels.Rows:
        """As csrc/bind.h allocates them."""
        self.rows += 4 * (capacity * width + 16)
        self.rows += capacity * width + 4 * 4 * capacity * (width // 32) if quantised else 0
        return kernels.Rows(capacity, width, quantised)

    def table(self, speeds: np.ndarray[Any, Any], context: int, factor: float) -> kernels.RopeTable:
        made = kernels.RopeTable(speeds, context, factor)
        self.tables += made.numpy().nbytes
        return made

    def positions(self, cpu: kernels.Cpu, table: np.ndarray[Any, Any]) -> kernels.PositionEmbedding:
        self.small += table.nbytes
        return kernels.PositionEmbedding(cpu, table)

    @property
    def weights(self) -> int:
        return sum(matrix.num_bytes for matrix in self.matrices) + self.small


def check(file: ModelSource, *, context: int, kv: str) -> None:
    """Weights, cache and buffers of the plan are what was allocated."""
    real = Allocations(file, context=context, kv=kv)
    planned = plan(file, context_length=context, kv=kv)
    assert planned.weights == real.weights
    assert planned.cache_bytes(context) == real.model.pages.page_bytes * real.model.pages.pages
    assert planned.token_bytes == real.model.kv_bytes_per_token
    spans = 4 * min(4 // planned.config.num_kv_heads + 1, 15) * planned.config.num_heads
    spans *= -(-context // kernels.SPAN) * (planned.config.head_dim + 2)
    assert planned.activations == real.rows + real.tables + spans


@pytest.mark.parametrize("kv", ["f32", "f16", "q8"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_takes_what_was_planned(tmp_path: Path, architecture: str, kv: str) -> None:
    with open_model(write_tiny_model(tmp_path / "m.gguf", architecture)) as file:
        check(file, context=300, kv=kv)


@pytest.mark.parametrize("form", [None, *WEIGHT_FORMS])
def test_weights_made_when_loading_are_planned_as_they_will_be(tmp_path: Path, form: Any) -> None:
    folder = write_tiny_folder(tmp_path, TinyLlama(tied=False))
    with ModelView(open_model(folder), weights=form) as file:
        check(file, context=64, kv="f16")


@pytest.mark.real_models
@pytest.mark.parametrize("name", REAL)
def test_real_models_take_what_was_planned(name: str) -> None:
    path = Path(os.environ.get("TOKENGLASS_TEST_MODELS", "nowhere"), name)
    if not path.is_file():
        pytest.skip(f"TOKENGLASS_TEST_MODELS has no {name}")
    with open_model(path) as file:
        check(file, context=2048, kv="f16")


def config(**settings: Any) -> dict[str, Any]:
    common = {"rms_norm_eps": 1e-6, "vocab_size": 1024, "max_position_embeddings": 131072}
    return {**common, **settings}


@pytest.mark.parametrize(
    ("settings", "num_tokens", "gib"),
    [
        # as published: unslothai/unsloth pull 4757, in 16 bits
        ({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
          "num_key_value_heads": 8, "intermediate_size": 14336}, 8192, 1.0),
        ({"model_type": "qwen3", "hidden_size": 1024, "num_hidden_layers": 28, "num_attention_heads": 16,
          "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 3072}, 40960, 4.375),
        ({"model_type": "gemma3_text", "hidden_size": 5376, "num_hidden_layers": 62, "head_dim": 128,
          "num_attention_heads": 32, "num_key_value_heads": 16, "intermediate_size": 21504,
          "sliding_window": 1024, "query_pre_attn_scalar": 168}, 131072, 10.40625),
    ],
)  # fmt: skip
def test_known_answers(tmp_path: Path, settings: dict[str, Any], num_tokens: int, gib: float) -> None:
    write_tiny_folder(tmp_path, TinyLlama())
    (tmp_path / "config.json").write_text(json.dumps(config(**settings)))
    (tmp_path / "model.safetensors").write_bytes(bytes([2, 0, 0, 0, 0, 0, 0, 0]) + b"{}")
    with open_model(tmp_path) as file:
        layers = cache_layers(read_config(file), "f16")
    assert sum(kind.seen_bytes(num_tokens) for kind in layers) == gib * GIB


def test_a_window_bounds_what_is_seen_and_short_texts_take_less() -> None:
    kind = CacheLayers(num_layers=5, window=512, token_bytes=100)
    assert kind.held_bytes(10_000) == 100 * 10_000
    assert kind.seen_bytes(10_000) == 100 * 512
    assert kind.seen_bytes(100) == kind.held_bytes(100) == 100 * 112  # seven pages of 16


def test_gemma_has_two_kinds_of_layers(tmp_path: Path) -> None:
    with open_model(write_tiny_model(tmp_path / "m.gguf", "gemma3")) as file:
        layers = cache_layers(read_config(file), "f16")
    assert [(kind.num_layers, kind.window) for kind in layers] == [(1, 0), (NUM_LAYERS["gemma3"] - 1, 16)]


def test_a_shape_that_cannot_be_is_refused_as_by_the_engine(tmp_path: Path) -> None:
    from tests.support.tiny_llama import write_tiny_llama

    path = write_tiny_llama(tmp_path / "m.gguf", metadata={"llama.block_count": np.uint32(0)})
    with open_model(path) as file, pytest.raises(ModelFileError, match="block_count"):
        plan(file)
