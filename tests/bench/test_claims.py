"""The pages of claims say what is measured now, wherever the numbers depend on the model alone."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

import tokenglass as tg

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def claims() -> ModuleType:
    spec = importlib.util.spec_from_file_location("claims", ROOT / "bench" / "claims.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["claims"] = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "bench")  # where a script finds its neighbours
        spec.loader.exec_module(module)
    return module


def page(language: str) -> str:
    return (ROOT / "docs" / language / "claims.md").read_text(encoding="utf-8")


@pytest.mark.real_models
def test_every_claim_about_the_model_is_measured_again(claims: ModuleType, real_model_path: Path) -> None:
    model = tg.load(real_model_path)
    english, chinese = page("en").splitlines(), page("zh").splitlines()
    for claim in claims.CLAIMS:
        en, zh = claim.rows(model)
        assert en in english
        assert zh in chinese


def test_every_claim_stands_once_on_each_page(claims: ModuleType) -> None:
    every = (*claims.CLAIMS, *claims.SPEED_CLAIMS)
    for language in ("en", "zh"):
        rows = [line.split(" | ")[0] for line in page(language).splitlines() if line.startswith("| ")]
        assert [row for row in rows if "claim" not in row and "说法" not in row] == [
            f"| {getattr(claim, language)}" for claim in every
        ]


def test_verdicts_are_words_of_both_languages(claims: ModuleType) -> None:
    assert claims.Result(True, "", "").verdicts == ("holds", "成立")
    assert claims.Result(False, "", "").verdicts == ("does not hold", "不成立")
    assert claims.Result(True, "", "", "n = 64").verdicts == ("holds from n = 64", "从 n = 64 起成立")


def test_a_claim_can_fail(claims: ModuleType, tiny_model_path: Path) -> None:
    """The tiny model's vocabulary is bytes: an English token is one or two characters, not three to four."""
    model = tg.load(tiny_model_path, num_threads=1)
    assert not claims.english_characters(model).holds
    assert claims.kv_bytes(model).holds


@pytest.mark.parametrize(("ratio", "words"), [(9.6, "10"), (0.44, "0.4"), (127.0, "100"), (3.2, "3")])
def test_speeds_are_rounded_to_one_digit(claims: ModuleType, ratio: float, words: str) -> None:
    assert claims.rounded(ratio) == words
