"""Damaged models, from the file to the second token: each is refused with a typed error, or runs.

The file readers end in the packing of C++, so `scripts/test sanitize` runs these with AddressSanitizer too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.hf_folder import write_tiny_folder
from tests.support.tiny_llama import TinyLlama, write_tiny_llama
from tests.support.tiny_models import write_tiny_model
from tokenglass.engine import Request, load
from tokenglass.errors import ModelFileError, TokenglassError
from tokenglass.formats import GGUFFile
from tokenglass.formats.hf_config import metadata_of
from tokenglass.formats.tensor_file import ModelSource
from tokenglass.models.config import read_config

pytestmark = pytest.mark.filterwarnings("error")

NARROW = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "IQ4_NL", "F16", "BF16", "F32")
WIDE = ("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K")  # blocks of 256
OTHERS = ("smollm3", "qwen2", "qwen3", "gemma3", "phi3", "gpt2")
NUMBERS = [
    0,
    1,
    2,
    3,
    15,
    16,
    17,
    31,
    33,
    255,
    256,
    4095,
    2**16,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**42 + 1,
    2**63,
]
EDITS = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True),  # where, as a share of the part
        st.sampled_from([1, 4, 8]),
        st.sampled_from(NUMBERS) | st.integers(0, 2**64 - 1),
    ),
    min_size=1,
    max_size=4,
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[bytes, int]]:
    """Models as bytes, and where their tensors begin: every type of block, every architecture."""
    folder = tmp_path_factory.mktemp("sound")
    wide = TinyLlama(hidden=256, num_heads=4, head_dim=64, ffn=256, num_layers=1)
    paths = {kind: write_tiny_llama(folder / kind, weight_type=kind) for kind in NARROW}
    paths |= {kind: write_tiny_llama(folder / kind, weight_type=kind, shape=wide) for kind in WIDE}
    paths |= {kind: write_tiny_model(folder / kind, kind) for kind in OTHERS}
    found = {}
    for kind, path in paths.items():
        with GGUFFile.open(path) as file:
            found[kind] = path.read_bytes(), min(info.offset for info in file.tensors.values())
    return found


def edited(content: bytes, start: int, end: int, edits: list[tuple[float, int, int]]) -> bytes:
    """`content` with numbers written over bytes between `start` and `end`."""
    changed = bytearray(content)
    for share, width, value in edits:
        at = start + int(share * (end - start))
        changed[at : at + width] = (value % 256**width).to_bytes(width, "little")
    return bytes(changed[: len(content)])


def write(path: Path, content: bytes) -> Path:
    path.unlink(missing_ok=True)  # a mapped file must not be rewritten in place
    path.write_bytes(content)
    return path


def runs_or_is_refused(path: Path, **options: Any) -> bool:
    try:
        engine = load(path, num_threads=1, context_length=32, max_rows=8, **options)
        for piece in engine.stream(Request(prompt_ids=[5, 6, 7, 299], max_tokens=2, trace_top=2)):
            assert all(0 <= token < 300 for token in piece.token_ids)
    except TokenglassError:
        return False
    return True


def fuzz(sound: dict[str, tuple[bytes, int]], path: Path, num_examples: int) -> None:
    outcomes = set()

    @given(st.sampled_from([*sound]), st.sampled_from(["header", "tensors", "end"]), EDITS, st.booleans())
    @settings(max_examples=num_examples, deadline=None, database=None, suppress_health_check=[*HealthCheck])
    def damage(kind: str, part: str, edits: list[tuple[float, int, int]], is_exact: bool) -> None:
        content, data = sound[kind]
        if part == "end":
            content = content[: int(edits[0][0] * len(content))]
        else:
            begin, end = (4, data) if part == "header" else (data, len(content))
            content = edited(content, begin, end, edits)
        options = {"activations": "f32", "kv": "f32"} if is_exact else {}
        outcomes.add(runs_or_is_refused(write(path, content), **options))

    damage()
    assert outcomes == {True, False}


def test_undamaged_models_run(sound: dict[str, tuple[bytes, int]], tmp_path: Path) -> None:
    for kind, (content, _) in sound.items():
        assert runs_or_is_refused(write(tmp_path / "m.gguf", content)), kind


def test_damaged_models_are_refused_or_run(sound: dict[str, tuple[bytes, int]], tmp_path: Path) -> None:
    fuzz(sound, tmp_path / "m.gguf", 200)


@pytest.mark.slow
def test_many_damaged_models(sound: dict[str, tuple[bytes, int]], tmp_path: Path) -> None:
    fuzz(sound, tmp_path / "m.gguf", 2000)


@pytest.mark.parametrize("num_examples", [100, pytest.param(2000, marks=pytest.mark.slow)])
def test_damaged_folders_are_refused_or_run(tmp_path: Path, num_examples: int) -> None:
    """One file of a folder is cut, or has other numbers, or other signs of JSON."""
    files = {path.name: path.read_bytes() for path in write_tiny_folder(tmp_path, TinyLlama()).iterdir()}
    outcomes = set()

    @given(
        st.sampled_from(sorted(files)),
        st.booleans(),
        st.booleans(),
        EDITS,
        st.sampled_from([None, "q8", "q4"]),
    )
    @settings(max_examples=num_examples, deadline=None, database=None, suppress_health_check=[*HealthCheck])
    def damage(
        name: str, is_cut: bool, is_text: bool, edits: list[tuple[float, int, int]], form: str | None
    ) -> None:
        content = files[name]
        end = min(len(content), 4000)  # the header
        if is_text:
            edits = [(share, 1, b'0123456789{}[]",:-.eE\\ \x00\xff'[value % 23]) for share, _, value in edits]
        if is_cut:
            content = content[: int(edits[0][0] * len(content))]
        write(tmp_path / name, edited(content, 0, min(end, len(content)), edits[1:] if is_cut else edits))
        outcomes.add(runs_or_is_refused(tmp_path, weights=form))
        write(tmp_path / name, files[name])

    assert runs_or_is_refused(tmp_path)
    damage()
    assert outcomes == {True, False}


CONFIG: dict[str, Any] = {
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 64, "rms_norm_eps": 1e-6,
    "vocab_size": 300, "sliding_window": 8, "use_sliding_window": True, "max_window_layers": 1,
    "layer_types": None, "no_rope_layers": [1, 0], "rope_theta": 1e4, "rope_local_base_freq": 1e4,
    "query_pre_attn_scalar": 16, "partial_rotary_factor": 1.0, "hidden_act": "silu", "n_embd": 64,
    "n_head": 4, "n_layer": 2, "n_positions": 64, "layer_norm_epsilon": 1e-5,
    "rope_scaling": {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 32},
}  # fmt: skip
KINDS = ("llama", "mistral", "smollm3", "qwen2", "qwen3", "gemma3_text", "phi3", "gpt2")
NUMERIC = st.sampled_from([*NUMBERS, -1, -(2**63), 1e-300, 1e300, float("nan"), float("inf"), 10**400])
ROPE = st.dictionaries(
    st.sampled_from(
        ["rope_type", "type", "factor", "original_max_position_embeddings", "attention_factor", "beta_fast",
         "beta_slow", "mscale", "mscale_all_dim", "low_freq_factor", "high_freq_factor", "full_attention"]
    ),
    NUMERIC | st.sampled_from(["linear", "dynamic", "yarn", "longrope", "llama3", "su", {}, {"factor": 0}]),
    max_size=5,
)  # fmt: skip
ODD = st.none() | st.booleans() | NUMERIC | st.text(max_size=3) | st.lists(NUMERIC, max_size=3) | ROPE


class Keys(ModelSource):
    """Metadata without a file."""

    def __init__(self, metadata: dict[str, Any]) -> None:
        self.path, self.metadata, self.tensors = Path("config.json"), metadata, {}

    def raw(self, name: str) -> Any:
        raise NotImplementedError

    def close(self) -> None: ...


@given(
    st.sampled_from(KINDS), st.dictionaries(st.sampled_from([*CONFIG, "rope_parameters"]), ODD, max_size=3)
)
@settings(max_examples=300, deadline=None)
def test_any_settings_are_refused_or_read(kind: str, changes: dict[str, Any]) -> None:
    """From config.json to the checked shape of a model."""
    try:
        keys = metadata_of({**CONFIG, "model_type": kind, **changes}, Path("config.json"), "tiny")
        config = read_config(Keys(dict(keys)))
    except ModelFileError:
        return
    assert config.num_layers == len(config.windows) == len(config.turned)
    assert np.isfinite([config.norm_eps, config.rope.base, config.rope.factor]).all()
