"""Chinese from end to end on a real model: a question in, whole characters out, as they are made."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.cli.conftest import child

pytestmark = [pytest.mark.real_models, pytest.mark.timeout(900)]
QWEN = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
HAN = re.compile("[\u4e00-\u9fff]")


@pytest.fixture
def qwen() -> Path:
    path = Path(os.environ.get("TOKENGLASS_TEST_MODELS", "nowhere")) / QWEN
    if not path.is_file():
        pytest.skip(f"TOKENGLASS_TEST_MODELS has no {QWEN}")
    return path


def chunks(*arguments: object) -> list[bytes]:
    """What arrives in a pipe, each time somebody looks."""
    process = child(*arguments)
    assert process.stdout is not None
    found = list(iter(lambda: os.read(process.stdout.fileno(), 1 << 16), b""))  # type: ignore[union-attr]
    _, error = process.communicate(timeout=60)
    assert process.returncode == 0, error.decode()
    return found


def test_an_answer_streams_in_whole_characters(qwen: Path) -> None:
    found = chunks("run", "-m", qwen, "用一句话介绍北京。", "--max-tokens", 64)
    text = "".join(chunk.decode() for chunk in found)  # strict: a torn character would be an error
    assert len(found) > 1
    assert "北京" in text
    assert len(HAN.findall(text)) > len(text) * 0.7


def test_characters_of_several_tokens_are_never_torn(qwen: Path) -> None:
    """龘 and 靐 are two tokens each."""
    found = chunks("run", "-m", qwen, "重复这几个字：龘靐", "--max-tokens", 24)
    text = "".join(chunk.decode() for chunk in found)
    assert "龘" in text
    assert "\ufffd" not in text
