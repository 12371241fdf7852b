"""The program on docs/en/async.md runs."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tokenglass import hub

PAGE = Path(__file__).parents[2] / "docs" / "en" / "async.md"


@pytest.mark.skipif(sys.platform == "win32", reason="a socket pair is handed to another process")
def test_the_pages_program_runs(
    tiny_model_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(hub, "resolve", lambda name: tiny_model_path)
    (program,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(program, PAGE.name, "exec"), {})
    assert capsys.readouterr().out.count("', '") == 3
