"""The llama model on the tiny file: same bits however it is run, and the same bits as its numpy twin."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.models.support import all_logits, bind
from tests.support.tiny_gguf import Tensor, write_gguf
from tests.support.tiny_llama import tiny_metadata, tiny_weights, write_tiny_llama
from tokenglass import kernels
from tokenglass.cache.pages import pages_for
from tokenglass.errors import ModelFileError
from tokenglass.kernels import reference
from tokenglass.models.batch import Batch, Slice

IDS = [int(i) for i in np.random.default_rng(7).integers(3, 300, 300)]


@pytest.fixture(scope="module")
def expected(tiny_model_path: Path) -> NDArray[np.float32]:
    """Logits after each of IDS: one chunk, one thread, the best instruction set."""
    return all_logits(bind(tiny_model_path, num_threads=1), IDS)


@pytest.mark.parametrize("isa", kernels.runnable_isas())
@pytest.mark.parametrize("num_threads", [1, 2, 3])
def test_threads_and_instruction_sets_give_the_same_bits(
    tiny_model_path: Path, expected: NDArray[np.float32], isa: str, num_threads: int
) -> None:
    model = bind(tiny_model_path, num_threads=num_threads, isa=isa)
    assert np.array_equal(all_logits(model, IDS), expected)


@pytest.mark.parametrize("chunk", [1, 15, 16, 17, 255, 256, 257])
def test_chunks_give_the_same_bits(tiny_model_path: Path, expected: NDArray[np.float32], chunk: int) -> None:
    assert np.array_equal(all_logits(bind(tiny_model_path), IDS, chunk=chunk), expected)


def test_a_row_gets_the_same_bits_alone_and_among_others(
    tiny_model_path: Path, expected: NDArray[np.float32]
) -> None:
    model = bind(tiny_model_path, num_pages=128)
    lengths = [1, 17, 40, 255, 256, 257, 299]
    slices, page = [], 0
    for n in lengths:  # each sequence prefilled up to its last token, then all decode together
        pages = list(range(page, page + pages_for(n)))[::-1]
        page += len(pages)
        if n > 1:
            all_logits(model, IDS[: n - 1], pages=pages)
        slices.append(Slice([IDS[n - 1]], n - 1, pages))
    together = model.forward(Batch(tuple(slices))).numpy().copy()
    assert np.array_equal(together, expected[[n - 1 for n in lengths]])


def test_what_lies_in_free_pages_changes_nothing(
    tiny_model_path: Path, expected: NDArray[np.float32]
) -> None:
    model = bind(tiny_model_path)
    for layer in range(model.pages.layers):
        model.pages.raw(layer)[:] = 0xFF  # every value NaN
    assert np.array_equal(all_logits(model, IDS, chunk=37), expected)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("weight_type", ["Q4_0", "Q4_1", "Q8_0", "F32", "F16", "BF16", "Q5_0"])
def test_the_numpy_twin_gives_the_same_bits(tmp_path: Path, weight_type: str, exact: bool) -> None:
    path = write_tiny_llama(tmp_path / "m.gguf", weight_type=weight_type, types={"token_embd.weight": "Q8_0"})
    fast = bind(path, exact=exact, kv="f32" if exact else "f16")
    twin = bind(path, exact=exact, kv="f32" if exact else "f16", ops=reference)
    assert np.array_equal(all_logits(fast, IDS[:40], chunk=16), all_logits(twin, IDS[:40], chunk=40))


def with_head(path: Path, head: NDArray[np.float32] | None) -> Path:
    """The tied model as a file, with this output matrix beside its embedding."""
    tensors: dict[str, Tensor] = {name: ("F32", values) for name, values in tiny_weights().items()}
    if head is not None:
        tensors["output.weight"] = ("F32", head)
    return write_gguf(path, tiny_metadata(), tensors)


def test_the_embedding_is_the_head_where_there_is_no_other(tmp_path: Path) -> None:
    """C01: no output matrix is no error, and a copy of the embedding changes no bit."""
    embedding = tiny_weights()["token_embd.weight"]
    tied = all_logits(bind(with_head(tmp_path / "tied.gguf", None), exact=True), IDS[:3])
    copied = all_logits(bind(with_head(tmp_path / "copy.gguf", embedding), exact=True), IDS[:3])
    assert np.array_equal(tied, copied)
    assert np.isfinite(tied).all()


def test_a_head_of_its_own_is_used(tmp_path: Path) -> None:
    """C01: the file's tensors decide, no flag: an output matrix unlike the embedding is the head."""
    embedding = tiny_weights()["token_embd.weight"]
    tied = all_logits(bind(with_head(tmp_path / "tied.gguf", None), exact=True), IDS[:3])
    doubled = all_logits(bind(with_head(tmp_path / "own.gguf", 2 * embedding), exact=True), IDS[:3])
    assert np.array_equal(doubled, 2 * tied)


@pytest.mark.parametrize("rows", [299, 1])
def test_a_head_of_another_shape_is_refused(tmp_path: Path, rows: int) -> None:
    """C01."""
    path = with_head(tmp_path / "short.gguf", tiny_weights()["token_embd.weight"][:rows])
    with pytest.raises(ModelFileError, match=r"output\.weight"):
        bind(path)


def test_a_type_without_a_kernel_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokenglass.kernels.has_panels", lambda name: name == "F32")
    path = write_tiny_llama(tmp_path / "q.gguf", weight_type="Q5_1")
    with pytest.raises(ModelFileError, match=r"token_embd\.weight: Q5_1 is not supported yet"):
        bind(path)


@pytest.mark.parametrize("weight_type", ["Q5_0", "Q5_1", "F16", "BF16"])
def test_every_type_stays_close_to_the_floats(tmp_path: Path, weight_type: str) -> None:
    plain = bind(write_tiny_llama(tmp_path / "f.gguf", weight_type="F32"), exact=True)
    other = bind(write_tiny_llama(tmp_path / "q.gguf", weight_type=weight_type))
    a, b = all_logits(plain, IDS[:20]), all_logits(other, IDS[:20])
    assert np.abs(a - b).max() < 0.2 * np.abs(a).max()


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("llama.attention.head_count", 0, "head_count"),
        ("llama.attention.head_count_kv", 3, "head_count_kv"),
        ("llama.block_count", 3, "blk.2"),
        ("llama.block_count", 1 << 30, "block_count"),
        ("llama.feed_forward_length", 128, "ffn_down"),
        ("llama.feed_forward_length", 1 << 20, "ffn_down"),  # at once: 6 GB of buffers are never made
        ("llama.context_length", 0, "context_length"),
        ("llama.rope.freq_base", float("nan"), "freq_base"),
        ("llama.rope.dimension_count", 7, "dimension_count"),
        ("llama.rope.dimension_count", 18, "dimension_count"),
        ("llama.rope.scaling.type", "cubic", "scaling"),
        ("llama.rope.scaling.factor", -1.0, "factor"),
        ("llama.attention.sliding_window", 1 << 30, "sliding_window"),
        ("llama.final_logit_softcapping", 30.0, "softcapping"),
        ("llama.expert_count", 8, "expert_count"),
        ("llama.attention.layer_norm_rms_epsilon", -1.0, "epsilon"),
    ],
)
def test_a_shape_that_does_not_fit_is_refused_by_name(
    tmp_path: Path, key: str, value: float | str, named: str
) -> None:
    path = write_tiny_llama(tmp_path / "bad.gguf", metadata={key: value})
    with pytest.raises(ModelFileError, match=named):
        bind(path)


def test_heads_that_are_no_multiple_of_32_together_are_refused(tmp_path: Path) -> None:
    heads = {"attention.head_count": 1, "attention.head_count_kv": 1, "attention.key_length": 48}
    metadata = {f"llama.{key}": value for key, value in heads.items()}
    path = write_tiny_llama(tmp_path / "bad.gguf", metadata={**metadata, "llama.rope.dimension_count": 48})
    with pytest.raises(ModelFileError, match="attention lengths must be multiples of 32"):
        bind(path)


def test_a_tensor_that_nobody_takes_is_refused(tmp_path: Path) -> None:
    extra: Tensor = ("F32", np.ones(16, np.float32))
    tensors: dict[str, Tensor] = {name: ("F32", values) for name, values in tiny_weights().items()}
    path = write_gguf(tmp_path / "m.gguf", tiny_metadata(), {**tensors, "blk.0.attn_q_norm.weight": extra})
    with pytest.raises(ModelFileError, match=r"attn_q_norm\.weight: is not known in the architecture llama"):
        bind(path)
