"""What int8 activations cost: the script's arithmetic, its texts, and the pages it writes."""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tokenglass.engine import load

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def quality() -> ModuleType:
    spec = importlib.util.spec_from_file_location("quality", ROOT / "bench" / "quality.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["quality"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def arm(kl: float, loss: float = 2.0, same: float = 0.9) -> dict[str, float]:
    return {"kl": kl, "loss": loss, "same": same}


@pytest.fixture
def record() -> dict[str, Any]:
    """Four windows in which our KL is half of the better one of llama.cpp's."""
    windows = [
        {
            "text": text,
            "positions": 100,
            "exact": arm(0.0, same=1.0),
            "tokenglass": arm(kl, 2.001),
            "llama.cpp": arm(2 * kl),
            "llama.cpp, flash attention": arm(3 * kl),
        }
        for text, kl in (("en", 0.01), ("en", 0.03), ("zh", 0.02), ("zh", 0.04))
    ]
    return {
        "time": "2026-01-02T03:04:05+00:00",
        "commit": "0123456789ab",
        "machine": {"cpu": "A processor"},
        "model": "tiny.gguf",
        "peer": "llama-cpp-python 0.3.36",
        "bytes": {"en": 1000, "zh": 2000},
        "windows": windows,
    }


def test_figures_are_those_of_the_formulas(quality: ModuleType) -> None:
    p, q = np.array([[0.5, 0.5], [0.9, 0.1]]), np.array([[0.25, 0.75], [0.9, 0.1]])
    kl, loss, same = quality.figures_of(np.log(p), np.log(q), np.array([0, 1]))
    assert kl == pytest.approx([0.5 * math.log(2) + 0.5 * math.log(2 / 3), 0])
    assert loss == pytest.approx([-math.log(0.25), -math.log(0.1)])
    assert same.tolist() == [0, 1]


def test_log_softmax_sums_to_one_for_large_logits_too(quality: ModuleType) -> None:
    rows = quality.log_softmax(np.array([[1e4, 1e4], [-5.0, 3.0]], np.float32))
    assert np.exp(rows).sum(1) == pytest.approx([1, 1])
    assert rows[0].tolist() == pytest.approx([-math.log(2)] * 2)


def test_logits_of_a_window_are_those_of_each_step(quality: ModuleType, tiny_model_path: Path) -> None:
    """More ids than one step gives logits for: the model's buffer is used again."""
    engine = load(tiny_model_path, num_threads=1)
    ids = engine.tokenizer.encode("the cat is on the mat and the dog is not on it" * 3)[:80]
    logits = quality.ours(engine)(ids)
    assert len(logits) == 80
    for num in (1, 32, 33, 80):
        assert (quality.ours(engine)(ids[:num])[-1] == logits[num - 1]).all()


def test_exact_mode_has_no_divergence_from_itself_and_the_default_has(
    quality: ModuleType, tiny_model_path: Path
) -> None:
    exact = quality.ours(load(tiny_model_path, num_threads=1, activations="f32", kv="f32"))
    default = quality.ours(load(tiny_model_path, num_threads=1))
    figures = quality.compare(list(range(5, 105)), exact, {"again": exact, "default": default})
    assert figures["positions"] == 99
    assert figures["again"] == figures["exact"]
    assert (figures["again"]["kl"], figures["again"]["same"]) == (0, 1)
    assert figures["default"]["kl"] > 0


@pytest.mark.parametrize("add_bos", [False, True])
def test_windows_hold_all_ids_and_the_bos_that_the_model_wants(
    quality: ModuleType, tiny_model_path: Path, add_bos: bool
) -> None:
    engine = load(tiny_model_path, num_threads=1)
    engine.tokenizer.vocabulary = replace(engine.tokenizer.vocabulary, bos_id=1, add_bos=add_bos)
    text = "the cat is on the mat " * 90
    windows = list(quality.cut(engine, text))
    start = [1] if add_bos else []
    assert all(window[: len(start)] == start for window in windows)
    assert max(map(len, windows)) == quality.WINDOW
    joined = [i for window in windows for i in window[len(start) :]]
    assert joined == engine.tokenizer.encode(text, bos=False)


def test_html_becomes_its_paragraphs(quality: ModuleType, tmp_path: Path) -> None:
    html = "<h1>No</h1><p>One &amp;\n  <a href=x>two</a></p><pre>no</pre><div><p>三</p></div><p> </p>"
    assert quality.paragraphs(html) == ["One & two", "三"]
    page, plain = tmp_path / "page.html", tmp_path / "plain.txt"
    page.write_text(html, encoding="utf-8")
    plain.write_text("<p>as it is", encoding="utf-8")
    assert quality.read_text([page, plain]) == "One & two\n三\n<p>as it is"


def test_text_is_cut_between_characters(quality: ModuleType) -> None:
    assert quality.beginning("ab猫猫", 6) == "ab猫"


def test_missing_text_names_its_package(
    quality: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(quality, "FOLDER", tmp_path)
    with pytest.raises(SystemExit, match="apt-get install debian-reference-en"):
        quality.sources(argparse.Namespace(text=[]))
    found = quality.sources(argparse.Namespace(text=["fr=a.txt", "en=b=c.html"]))
    assert found == [("fr", [Path("a.txt")]), ("en", [Path("b=c.html")])]


def test_error_of_a_quotient_is_paired(quality: ModuleType) -> None:
    under = np.array([1.0, 5.0, 2.0, 9.0])
    assert quality.quotient(2 * under, under) == (2.0, 0.0)
    value, error = quality.quotient(under, np.ones(4))
    assert value == 4.25
    assert error == pytest.approx(under.std() / 2, rel=0.03)  # the textbook's, for means


def test_table_compares_with_the_better_setting_of_llama_cpp(
    quality: ModuleType, record: dict[str, Any]
) -> None:
    english, chinese = quality.table(record, "en"), quality.table(record, "zh")
    assert "divided by that of llama.cpp: **English 0.500 ± 0.000; Chinese 0.500" in english
    assert "| both | tokenglass | 0.02500 ± " in english
    assert "| 7.396 | +0.10% |" in english
    assert "除以 llama.cpp 的 KL：**英文 0.500 ± 0.000；中文 0.500" in chinese
    rows = [[line for line in text.splitlines() if line.startswith("|")] for text in (english, chinese)]
    assert len(rows[0]) == len(rows[1]) == 2 + 3 * 4


def results(quality: ModuleType) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(quality.RESULTS.read_text(encoding="utf-8").splitlines()[-1])
    return record


@pytest.mark.parametrize("language", ["en", "zh"])
def test_pages_show_the_last_result(quality: ModuleType, language: str) -> None:
    page = (ROOT / "docs" / language / "quality.md").read_text(encoding="utf-8")
    shown = page.partition("<!-- quality:begin -->")[2].partition("<!-- quality:end -->")[0]
    assert shown.strip() == quality.table(results(quality), language)
