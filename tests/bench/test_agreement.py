"""Best tokens that are the exact mode's: what the script counts, and the pages it writes."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tokenglass.engine import load

BENCH = Path(__file__).parents[2] / "bench"
TEXT = "the cat is on the mat and the dog is not on it\n" * 40


@pytest.fixture
def agreement(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCH))
    monkeypatch.delitem(sys.modules, "quality", raising=False)
    import agreement

    return agreement


def test_positions_are_counted(
    agreement: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tiny_model_path: Path
) -> None:
    """A peer that is our exact mode agrees everywhere; one that is our default mode, where we do."""
    text = tmp_path / "text.txt"
    text.write_text(TEXT, encoding="utf-8")

    def peer(model: Path, *, flash: bool, num_threads: int) -> object:
        exact = load(model, num_threads=1, activations="f32", kv="f32")
        return agreement.ours(exact if flash else load(model, num_threads=1))

    monkeypatch.setattr(agreement, "theirs", peer)
    options = argparse.Namespace(text=[f"en={text}"], positions=600, threads=1)
    record = agreement.measured(str(tiny_model_path), options)
    same = record["same"]
    assert record["positions"] == same["llama.cpp, flash attention"] == 600
    assert 0 < same["tokenglass"] == same["llama.cpp"] < 600
    assert (record["only_tokenglass"], record["only_llama_cpp"]) == (0, 600 - same["tokenglass"])
    with pytest.raises(SystemExit, match="have only"):
        agreement.measured(str(tiny_model_path), argparse.Namespace(**{**vars(options), "positions": 10**6}))


def test_languages_take_turns(agreement: ModuleType, tmp_path: Path, tiny_model_path: Path) -> None:
    files = {"en": TEXT, "zh": "你好" * 900}
    for language, text in files.items():
        (tmp_path / language).write_text(text, encoding="utf-8")
    engine = load(tiny_model_path, num_threads=1)
    options = argparse.Namespace(text=[f"{name}={tmp_path / name}" for name in files], positions=1500)
    first, second, third = (engine.tokenizer.decode(ids) for ids in agreement.windows(engine, options))
    assert "cat" in first
    assert "cat" in third
    assert set(second) <= {"你", "好"}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_pages_show_the_last_results(agreement: ModuleType, language: str) -> None:
    lines = agreement.RESULTS.read_text(encoding="utf-8").splitlines()[-3:]
    page = (BENCH.parent / "docs" / language / "quality.md").read_text(encoding="utf-8")
    assert agreement.table([json.loads(line) for line in lines], language) in page
