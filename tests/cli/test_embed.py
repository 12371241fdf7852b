"""`tokenglass embed`: each form has the vectors of the API; mistakes are one line."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import tokenglass as tg
from tests.cli.conftest import Command
from tokenglass.errors import ParameterError

TEXTS = ["the water", "你好 a\x1b[2J"]


@pytest.fixture
def embed(tokenglass_: Command, tiny_model_path: Path) -> Command:
    return lambda *arguments: tokenglass_("embed", "-m", tiny_model_path, "--threads", 1, *arguments)


def test_every_form_has_the_vectors_of_the_api(
    embed: Command, tiny_model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tg.load(tiny_model_path, num_threads=1)
    expected = model.embed(TEXTS)
    np.testing.assert_array_equal(model.embed(TEXTS[1])[0], expected[1])
    lines = [json.loads(line) for line in embed(*TEXTS).out.splitlines()]
    np.testing.assert_array_equal(np.array([line["embedding"] for line in lines], np.float32), expected)
    record = embed(*TEXTS, "--format", "json").json
    np.testing.assert_array_equal(
        np.array([one["embedding"] for one in record["data"]], np.float32), expected
    )
    assert record["usage"]["total_tokens"] == sum(line["tokens"] for line in lines)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(TEXTS).encode() + b"\n")))
    assert embed("--format", "npy", "--out", tmp_path / "v.npy").status == 0
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy", allow_pickle=False), expected)
    last = model.embed(TEXTS, pooling="last", normalize=False)
    found = embed(*TEXTS, "--pooling", "last", "--no-normalize", "--format", "json").json["data"]
    np.testing.assert_array_equal(np.array([one["embedding"] for one in found], np.float32), last)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("",), "text is empty"),
        (("a", ""), "text is empty"),
        (("a", "--format", "npy"), "npy needs --out FILE"),
        (("a" * 3000,), "window holds 512"),
        (("a", "--pooling", "max"), "--pooling: invalid choice"),
    ],
)
def test_a_mistake_is_one_line(embed: Command, arguments: tuple[str, ...], words: str) -> None:
    outcome = embed(*arguments)
    assert outcome.status == 2
    assert words in outcome.error


def test_an_api_call_without_text_is_refused(tiny_model_path: Path) -> None:
    model = tg.load(tiny_model_path, num_threads=1)
    for texts in ([], [""], "", [5]):
        with pytest.raises(ParameterError, match="texts"):
            model.embed(texts)  # type: ignore[arg-type]
