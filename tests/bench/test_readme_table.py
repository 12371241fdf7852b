"""The script that writes the measured table into both READMEs, with a result that is not measured."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script with two small pages instead of the real ones."""
    spec = importlib.util.spec_from_file_location("readme_table", ROOT / "bench" / "readme_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ("README.md", "README.zh-CN.md"):
        page = f"# {name}\n\n{module.BEGIN}\nnot measured yet\n{module.END}\n\nthe rest\n"
        (tmp_path / name).write_text(page, encoding="utf-8")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "RESULTS", tmp_path / "results" / "readme_table.jsonl")
    return module


def test_result_is_kept_and_both_pages_are_rewritten(
    script: ModuleType, record: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "measured", lambda arguments: json.dumps(record))
    monkeypatch.setattr(sys, "argv", ["readme_table.py", "--quick"])
    script.main()
    script.main()
    english = (tmp_path / "README.md").read_text(encoding="utf-8")
    chinese = (tmp_path / "README.zh-CN.md").read_text(encoding="utf-8")
    assert "| decode after 0 | 300 tokens/s | 100 tokens/s | 3.00x |" in english
    assert "commit 0123456789ab, 2026-01-02" in english
    assert "| 在 0 个 token 之后解码 | 300 tokens/s | 100 tokens/s | 3.00x |" in chinese
    for page in (english, chinese):
        assert page.endswith(f"\n{script.END}\n\nthe rest\n")
        assert page.count("3.00x") == 1  # the second run replaced the first
        assert "not measured yet" not in page
    assert len(script.RESULTS.read_text().splitlines()) == 2


def test_pages_can_be_rewritten_without_measuring(
    script: ModuleType, record: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script.RESULTS.parent.mkdir()
    script.RESULTS.write_text(json.dumps({}) + "\n" + json.dumps(record) + "\n")
    monkeypatch.setattr(script, "measured", lambda arguments: pytest.fail("it measured"))
    monkeypatch.setattr(sys, "argv", ["readme_table.py", "--from-results"])
    script.main()
    assert "3.00x" in (tmp_path / "README.md").read_text(encoding="utf-8")


def test_every_label_has_a_chinese_word(script: ModuleType) -> None:
    from tokenglass.bench.table import LABELS

    assert {label for label, _, _ in LABELS.values()} <= set(script.CHINESE)


def test_page_without_markers_is_refused(script: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing here")
    with pytest.raises(SystemExit, match=r"page\.md has no"):
        script.rewrite(page, "table")
    assert page.read_text() == "nothing here"


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_real_pages_have_the_markers(script: ModuleType, name: str) -> None:
    page = (ROOT / name).read_text(encoding="utf-8")
    assert page.count(script.BEGIN) == page.count(script.END) == 1


def test_script_asks_for_json(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        assert command[1:] == ["-m", "tokenglass", "bench", "--json", "-n", "3"]
        return subprocess.CompletedProcess(command, 0, stdout="{}\n")

    monkeypatch.setattr(subprocess, "run", run)
    assert script.measured(["-n", "3"]) == "{}"
