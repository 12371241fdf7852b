"""`tokenglass next`: the numbers are those of one forward pass and add up; what is shown fits and is safe."""

from __future__ import annotations

import math
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.cli.conftest import Command, child, finish
from tests.cli.test_output import read_all
from tests.support.tiny_llama import write_tiny_llama
from tokenglass.cli.columns import width
from tokenglass.engine import load
from tokenglass.engine.stepping import Stepper


@pytest.fixture
def next_(tokenglass_: Command, tiny_model_path: Path) -> Command:
    return lambda *arguments: tokenglass_("next", "-m", tiny_model_path, *arguments)


def softmax(z: NDArray[np.float32], temperature: float = 1.0) -> NDArray[np.float64]:
    e: NDArray[np.float64] = np.exp((z - z.max()).astype(np.float64) / temperature)
    return e / np.sum(e)


@pytest.fixture
def logits(tiny_model_path: Path) -> NDArray[np.float32]:
    engine = load(tiny_model_path, num_threads=1)
    with Stepper(engine, engine.tokenizer.encode("the water")) as stepper:
        row: NDArray[np.float32] = stepper.scores().numpy()[0].copy()
        return row


def test_numbers_are_the_models(next_: Command, logits: NDArray[np.float32]) -> None:
    record = next_("the water", "--raw", "--json", "--top", 5).json
    p = softmax(logits)
    assert record["logits_shape"] == [len(logits)]
    assert record["entropy"] == pytest.approx(-(p * np.log(p)).sum(), abs=1e-5)
    assert record["entropy_bits"] == pytest.approx(record["entropy"] / math.log(2))
    order = np.argsort(-logits, kind="stable")[:5]
    for rank, (token, found) in enumerate(zip(order, record["candidates"], strict=True), start=1):
        assert (found["rank"], found["token_id"]) == (rank, token)
        assert found["logit"] == pytest.approx(logits[token])
        assert found["probability"] == pytest.approx(p[token], rel=1e-5)
        assert found["cumulative"] == pytest.approx(p[order[:rank]].sum(), rel=1e-5)


def test_temperatures_stand_side_by_side_and_are_exact(next_: Command, logits: NDArray[np.float32]) -> None:
    record = next_("the water", "--raw", "--json", "--temperature", "0.2,0.7,1.5").json
    assert [column["title"] for column in record["columns"]] == ["raw", "T=0.2", "T=0.7", "T=1.5"]
    for at, temperature in enumerate((1.0, 0.2, 0.7, 1.5)):
        p = softmax(logits, temperature)
        for found in record["candidates"]:
            assert found["columns"][at] == pytest.approx(p[found["token_id"]], rel=1e-4)


def test_shown_and_rest_are_one(next_: Command) -> None:
    arguments = ("--temperature", "0,0.2,3", "--top-k", 30, "--top-p", 0.9, "--top", 4, "--token", "#9")
    record = next_("the", "--raw", "--json", *arguments).json
    for at, column in enumerate(record["columns"]):
        total = sum(found["columns"][at] for found in record["candidates"]) + column["rest"]
        assert total == pytest.approx(1, abs=1e-6)


def test_raw_does_not_move_with_temperature(next_: Command) -> None:
    columns = [next_("the", "--raw", "--json", "--temperature", t).json["entropy"] for t in (0, 0.3, 9)]
    assert len(set(columns)) == 1


def test_cuts_are_a_column_of_their_own(next_: Command) -> None:
    record = next_("the", "--raw", "--json", "--top-k", 3, "--top", 5).json
    raw, cut = record["columns"]
    assert (cut["is_cut"], cut["survivors"]) == (True, 3)
    assert cut["stages"][0]["name"] == "top_k"
    assert [found["columns"][1] > 0 for found in record["candidates"]] == [True] * 3 + [False] * 2
    assert raw["stages"] == []
    assert "top_k 3 leaves 3 tokens" in next_("the", "--raw", "--top-k", 3).out


def test_named_token_is_shown_with_its_rank(next_: Command, logits: NDArray[np.float32]) -> None:
    worst = int(np.argmin(logits))
    record = next_("the water", "--raw", "--json", "--top", 2, "--token", f"#{worst}").json
    assert [found["rank"] for found in record["candidates"]] == [1, 2, len(logits)]
    assert record["candidates"][2]["token_id"] == worst
    assert f"{len(logits)}" in next_("the water", "--raw", "--top", 2, "--token", f"#{worst}").out
    assert "    …\n" in next_("the water", "--raw", "--top", 2, "--token", f"#{worst}").out


@pytest.mark.parametrize(
    ("token", "text"), [(" the", " the"), ("<|im_end|>", "<|im_end|>"), ("你", "你"), ("#1", "<|im_start|>")]
)
def test_token_by_text(next_: Command, token: str, text: str) -> None:
    record = next_("the", "--raw", "--json", "--top", 1, "--token", token).json
    assert text in [found["text"] for found in record["candidates"]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--token", "waterfall"), "Name one of them, as #ID"),
        (("--token", "#99999"), "ids end at #"),
        (("--temperature", "warm"), "must be numbers with commas"),
        (("--temperature", "0.5,nan"), "temperature must be a number from 0 to 100"),
        (("--top", "0"), "top must be a whole number from 1"),
        (("--top-p", "2"), "top_p must be a number from 0 to 1"),
        (("--raw", "--system", "x"), "--system is for chat"),
    ],
)
def test_mistake_is_status_2(next_: Command, arguments: tuple[str, ...], words: str) -> None:
    outcome = next_("the", *arguments)
    assert outcome.status == 2
    assert words in outcome.err
    assert outcome.out == ""


def test_empty_prompt_is_refused(next_: Command) -> None:
    assert "is empty" in next_("").error


def test_unused_rows_are_said(tokenglass_: Command, tmp_path: Path) -> None:
    from tests.support.tiny_llama import tiny_tokens

    kinds = [3, 3, 3] + [1] * (len(tiny_tokens()[0]) - 5) + [5, 5]
    path = write_tiny_llama(tmp_path / "unused.gguf", metadata={"tokenizer.ggml.token_type": kinds})
    outcome = tokenglass_("next", "-m", path, "--raw", "the")
    assert "; 2 more rows belong to no token" in outcome.out
    assert tokenglass_("next", "-m", path, "--raw", "the", "--json").json["unused_rows"] == 2


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(
    "arguments",
    [(), ("--temperature", "0.2,0.7,1.5"), ("--temperature", "0.1,0.2,0.3,0.4,0.5", "--top-k", 5)],
)
def test_lines_fit_80_columns(next_: Command, lang: str, arguments: tuple[str, ...]) -> None:
    outcome = next_("你好 天空", "--lang", lang, *arguments)
    assert outcome.status == 0
    assert all(width(line) <= 80 for line in outcome.out.splitlines())


def test_hostile_prompt_and_control_bytes_are_not_obeyed(next_: Command) -> None:
    outcome = next_("a\x1b[2J\u202e\x07", "--raw", "--top", 400)
    assert outcome.status == 0
    assert not set(outcome.out) & set("\x1b\x07\u202e\r")


def test_prompt_of_a_megabyte_is_refused_with_both_numbers(tiny_model_path: Path, tmp_path: Path) -> None:
    text = tmp_path / "long.txt"
    text.write_text("word " * 200_000, encoding="utf-8")
    with text.open("rb") as stdin:
        outcome = finish(child("next", "-m", tiny_model_path, "--raw", "-", stdin=stdin))
    assert (outcome.status, outcome.out) == (2, "")
    assert "600001" in outcome.err.splitlines()[-1]
    assert "512" in outcome.err.splitlines()[-1]


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminal")
@pytest.mark.parametrize("no_color", [{}, {"NO_COLOR": "1"}])
def test_terminal_gets_the_lines_of_a_pipe(tiny_model_path: Path, no_color: dict[str, str]) -> None:
    import pty

    arguments = ("next", "-m", tiny_model_path, "--raw", "--top", 40, "a\x1b]0;gotcha\x07\u202eb")
    reader, writer = pty.openpty()
    env = {"TERM": "xterm-256color", "COLUMNS": "80", **no_color}
    process = child(*arguments, env=env, stdout=writer)
    os.close(writer)
    shown = read_all(reader).decode()
    os.close(reader)
    assert finish(process).status == 0
    text = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert text == shown or not no_color
    assert not set(text) & set("\x1b\x07\u202e")
    lines = text.replace("\r\n", "\n").splitlines()
    assert lines == finish(child(*arguments)).out.splitlines()
    assert all(width(line) <= 80 for line in lines)


def test_chat_and_raw_differ(next_: Command) -> None:
    chat, raw = next_("the", "--json").json, next_("the", "--json", "--raw").json
    assert (chat["chat"], raw["chat"]) == (True, False)
    assert len(chat["prompt_ids"]) > len(raw["prompt_ids"])


@pytest.mark.real_models
def test_capital_of_france(tokenglass_: Command, real_model_path: Path) -> None:
    record = tokenglass_("next", "-m", real_model_path, "The capital of France is", "--raw", "--json").json
    best = record["candidates"][0]
    assert best["text"] == " Paris"
    assert best["probability"] > 0.7
