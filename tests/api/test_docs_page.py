"""The code on docs/en/python.md runs, from top to bottom, and its comments are true."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import tokenglass as tg

PAGE = Path(__file__).parents[2] / "docs" / "en" / "python.md"


@pytest.mark.real_models
def test_the_pages_code_runs(real_model_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = tg.load
    monkeypatch.setattr(tg, "load", lambda name: load(real_model_path), raising=False)
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))
    names: dict[str, Any] = {}
    exec(compile(code, PAGE.name, "exec"), names)
    assert names["d"].top(1)[0].text == " Paris"
    assert names["model"].detokenize([4528]) == " London"
    assert names["step"].taken_ids == [28]
