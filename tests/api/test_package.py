"""`import tokenglass as tg` is light and shows exactly the public names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tokenglass as tg

LOOK = "import sys, tokenglass; print([name for name in ('numpy', 'tokenglass.api') if name in sys.modules])"


def test_import_loads_nothing_heavy() -> None:
    source = str(Path(tg.__file__).parents[1])
    out = subprocess.run(
        [sys.executable, "-c", LOOK], env={"PYTHONPATH": source}, capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "[]"


def test_every_public_name_is_there_and_listed() -> None:
    for name in tg.__all__:
        assert getattr(tg, name) is not None
        assert name in dir(tg)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        _ = tg.lode
