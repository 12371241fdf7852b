"""The peer: refused with the extra's name where it is missing, measured like ourselves where it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tokenglass.bench import peers
from tokenglass.bench.measure import Ours, cold_start, text_ids
from tokenglass.bench.peers import LlamaCpp, cold_start_command, describe
from tokenglass.errors import MissingExtraError, TokenglassError


def test_missing_peer_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"needs the extra \[peers\]"):
        describe()


def test_llama_cpp_answers_like_any_contender(roomy_model_path: Path, ours: Ours) -> None:
    pytest.importorskip("llama_cpp")
    ids = text_ids(ours.engine, 20)
    with LlamaCpp(roomy_model_path, num_threads=1, positions=64) as peer:
        first, again = peer.generate(ids, 6), peer.generate(ids, 6)
    assert len(first.token_ids) == 6
    assert first.token_ids == again.token_ids  # nothing is kept between calls
    assert min(first.first_token_s, first.rest_s) > 0
    assert describe()["version"].startswith("llama-cpp-python ")


def test_llama_cpp_starts_cold(roomy_model_path: Path) -> None:
    pytest.importorskip("llama_cpp")
    assert cold_start(cold_start_command(roomy_model_path, 1))["cold_start_s"] > 0


def test_peer_that_cannot_read_the_model_is_an_error_and_no_hang(tmp_path: Path) -> None:
    pytest.importorskip("llama_cpp")
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF")
    with (
        LlamaCpp(broken, num_threads=1, positions=64) as peer,
        pytest.raises(TokenglassError, match=r"llama\.cpp stopped"),
    ):
        peer.generate([1, 2, 3], 2)
