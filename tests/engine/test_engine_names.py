"""Which engine a setting belongs to, and what is said where Transformers is not installed. No torch here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import SOURCE
from tokenglass.cli.errors import error_line
from tokenglass.cli.language import set_language
from tokenglass.engine import load
from tokenglass.errors import MissingExtraError, ParameterError


@pytest.mark.parametrize("absent", ["torch", "transformers", "accelerate"])
def test_a_missing_extra_is_named_with_the_command(
    tiny_model_path: Path, monkeypatch: pytest.MonkeyPatch, absent: str
) -> None:
    for name in ("torch", "transformers", "accelerate"):
        monkeypatch.setitem(sys.modules, name, None if name == absent else sys)
    with pytest.raises(MissingExtraError) as raised:
        load(tiny_model_path, engine="transformers")
    command = "pip install 'tokenglass[transformers]'"
    assert str(raised.value) == f"--engine transformers needs the extra [transformers]. Install it: {command}"
    try:
        set_language("zh")
        assert (
            error_line(raised.value) == f"--engine transformers 要有附加包 [transformers]。请安装：{command}"
        )
    finally:
        set_language("en")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "vllm"}, "engine must be tokenglass or transformers, not 'vllm'"),
        ({"device": "cuda"}, "device is a setting of the engine transformers. Add --engine transformers"),
        ({"dtype": "bf16"}, "dtype is a setting of the engine transformers. Add --engine transformers"),
        ({"trust_remote_code": True}, "trust_remote_code is a setting of the engine transformers"),
        ({"engine": "transformers", "kv": "q8"}, "kv is a setting of the engine tokenglass. Leave it out"),
        ({"engine": "transformers", "weights": "q4"}, "weights is a setting of the engine tokenglass"),
        (
            {"engine": "transformers", "activations": "f32"},
            "activations is a setting of the engine tokenglass",
        ),
    ],
)
def test_a_setting_of_the_other_engine_is_refused(
    tiny_model_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ParameterError) as raised:
        load(tiny_model_path, **options)
    assert str(raised.value).startswith(message)


def test_our_own_engine_never_imports_torch(tiny_model_path: Path) -> None:
    code = (
        "import sys, tokenglass as tg\n"
        f"tg.load({str(tiny_model_path)!r}).generate('the', max_tokens=2)\n"
        "assert not {'torch', 'transformers'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": SOURCE}, timeout=60)
