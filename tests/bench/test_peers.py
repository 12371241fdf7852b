"""The peers: refused with the package's name where one is missing, measured like ourselves where not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.tiny_llama import TinyLlama, write_tiny_llama
from tokenglass.bench import peers
from tokenglass.bench.llama_cpp import requantised
from tokenglass.bench.measure import cold_start
from tokenglass.bench.ours import Ours
from tokenglass.bench.peers import KINDS, Peer, cold_start_command, find_peers
from tokenglass.bench.plan import text_ids
from tokenglass.errors import TokenglassError, UsageError


@pytest.mark.parametrize("name", KINDS)
def test_missing_peer_is_named_with_its_package(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "find_spec", lambda _: None)
    with pytest.raises(TokenglassError, match=f"pip install {KINDS[name].package}"):
        find_peers([name])


def test_unknown_peer_is_refused() -> None:
    with pytest.raises(UsageError, match=r"no engine is called 'vllm'\. --vs takes llama\.cpp, transformers"):
        find_peers(["vllm"])


def test_transformers_is_measured_in_both_types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "find_spec", lambda _: True)
    assert [info.name for info in find_peers(["transformers"])] == ["transformers bf16", "transformers f32"]


def test_llama_cpp_answers_like_any_contender(roomy_model_path: Path, ours: Ours) -> None:
    pytest.importorskip("llama_cpp")
    ids = text_ids(ours.engine.tokenizer, 24)
    (info,) = find_peers(["llama.cpp"])
    with Peer(info, roomy_model_path, num_threads=1, positions=64) as peer:
        first = peer.generate([ids[:20]], 6)
        assert len(first.token_ids) == 6
        assert peer.generate([ids[:20]], 6).token_ids == first.token_ids  # nothing is kept between calls
        assert [peer.generate([ids[:20]], 6, keep=True).token_ids for _ in range(2)] == [first.token_ids] * 2
        together = peer.generate([ids[i : i + 20] for i in range(3)], 6)
        assert together.token_ids == first.token_ids
    assert min(first.first_token_s, first.rest_s, together.rest_s) > 0
    assert info.version.startswith("llama-cpp-python ")


def test_llama_cpp_makes_its_best_form_and_starts_cold(tmp_path: Path) -> None:
    pytest.importorskip("llama_cpp")
    path = write_tiny_llama(tmp_path / "f16.gguf", weight_type="F16", shape=TinyLlama(context_length=1024))
    assert requantised(path, tmp_path / "q4_0.gguf", 1)
    assert (tmp_path / "q4_0.gguf").stat().st_size < path.stat().st_size
    assert cold_start(cold_start_command(path, 1))["cold_start_s"] > 0
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF")
    assert not requantised(broken, tmp_path / "none.gguf", 1)


def test_peer_that_cannot_read_the_model_is_an_error_and_no_hang(tmp_path: Path) -> None:
    pytest.importorskip("llama_cpp")
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF")
    (info,) = find_peers(["llama.cpp"])
    with (
        Peer(info, broken, num_threads=1, positions=64) as peer,
        pytest.raises(TokenglassError, match=r"llama\.cpp stopped"),
    ):
        peer.generate([[1, 2, 3]], 2)
