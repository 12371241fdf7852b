"""The page of performance and its curves, from a result that is not measured."""

from __future__ import annotations

import importlib.util
import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tokenglass.processors import Processors

ROOT = Path(__file__).parents[2]


def script_module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "bench" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("curves", "readme_table"):
        monkeypatch.setitem(sys.modules, name, script_module(name))
    return script_module("performance_page")


@pytest.fixture
def result(record: dict[str, Any]) -> dict[str, Any]:
    record["results"] |= {
        "decode_4096_tokens_per_s": {"tokenglass": [200.0, 220.0, 210.0], "llama.cpp": [50.0, 51.0, 52.0]},
        "rows_1_step_s": {"tokenglass": [0.003], "llama.cpp": [0.01]},
        "rows_8_step_s": {"tokenglass": [0.005], "llama.cpp": [0.04]},
    }
    threads = [
        {
            "machine": {"num_threads": n},
            "results": {
                "prefill_512_tokens_per_s": {"tokenglass": [500.0 * n]},
                "decode_0_tokens_per_s": {"tokenglass": [200.0 + 50 * n]},
            },
        }
        for n in (1, 2)
    ]
    return {"main": record, "threads": threads}


def test_one_command_rewrites_pages_curves_and_readmes(
    script: ModuleType, result: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = sys.modules["readme_table"]
    pages = [tmp_path / name for name in ("README.md", "README.zh-CN.md")]
    for language in ("en", "zh"):
        (tmp_path / "docs" / language).mkdir(parents=True)
        pages.append(tmp_path / "docs" / language / "performance.md")
    for page in pages:
        page.write_text(f"# Head\n{tables.BEGIN}\nold\n{tables.END}\ntail\n", encoding="utf-8")
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    monkeypatch.setattr(script, "RESULTS", tmp_path / "performance.jsonl")
    script.RESULTS.write_text(json.dumps(result) + "\n")
    monkeypatch.setattr(sys, "argv", ["performance_page.py", "--from-results"])
    script.main()
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert "3.00x" in text
        assert "old" not in text
        assert text.endswith("tail\n")
    for language in ("en", "zh"):
        for name in ("depth", "rows", "threads"):
            ET.parse(tmp_path / "docs" / language / f"performance-{name}.svg")


def test_a_further_model_gets_a_table_behind_the_main_one(
    script: ModuleType, result: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = sys.modules["readme_table"]
    asked: list[list[str]] = []

    def measured(arguments: list[str]) -> str:
        asked.append(list(arguments))
        return json.dumps(result["main"] | {"model": f"measured {arguments[-1]}"})

    monkeypatch.setattr(tables, "measured", measured)
    monkeypatch.setattr(tables, "rewrite_readmes", lambda record: None)
    monkeypatch.setattr(script, "RESULTS", tmp_path / "performance.jsonl")
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    for language in ("en", "zh"):
        page = tmp_path / "docs" / language / "performance.md"
        page.parent.mkdir(parents=True)
        page.write_text(f"{tables.BEGIN}\nold\n{tables.END}\n", encoding="utf-8")
    script.RESULTS.write_text(json.dumps(result) + "\n")
    monkeypatch.setattr(sys, "argv", ["performance_page.py", "--only", "a.gguf", "b.gguf"])
    script.main()
    assert [arguments[-2:] for arguments in asked] == [["-m", "a.gguf"], ["-m", "b.gguf"]]
    assert all(arguments[:2] == ["--vs", "llama.cpp"] for arguments in asked)
    kept = json.loads(script.RESULTS.read_text().splitlines()[-1])
    assert list(kept["others"]) == ["measured a.gguf", "measured b.gguf"]
    for language in ("en", "zh"):
        text = (tmp_path / "docs" / language / "performance.md").read_text(encoding="utf-8")
        assert (
            text.index(result["main"]["model"])
            < text.index("measured a.gguf")
            < text.index("measured b.gguf")
        )


def test_curves_are_those_of_the_numbers(script: ModuleType, result: dict[str, Any]) -> None:
    depth = script.series_of(result["main"], r"decode_(\d+)_tokens_per_s", 1)
    assert depth == {"tokenglass": [(0, 300), (4096, 210)], "llama.cpp": [(0, 100), (4096, 51)]}
    assert script.scaled([(1, 250.0), (2, 300.0)]) == [(1.0, 1.0), (2.0, 1.2)]
    picture = script.pictures(result, "en")["rows"]
    assert picture.count("<polyline") == 2
    assert ">40<" in picture  # the slowest step, in ms, at the top of the axis


def test_measuring_asks_for_the_main_run_and_for_each_number_of_threads(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def measured(arguments: list[str]) -> str:
        asked.append(list(arguments))
        return "{}"

    monkeypatch.setattr(sys.modules["readme_table"], "measured", measured)
    monkeypatch.setattr(script, "read_processors", lambda: Processors(8, 5))
    script.measure()
    assert asked[0][:2] == ["--vs", "llama.cpp"]
    assert [arguments[-1] for arguments in asked[1:]] == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_real_pages_have_the_markers(script: ModuleType, language: str) -> None:
    page = (ROOT / "docs" / language / "performance.md").read_text(encoding="utf-8")
    tables = sys.modules["readme_table"]
    assert page.count(tables.BEGIN) == page.count(tables.END) == 1
