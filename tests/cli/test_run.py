"""`tokenglass run` on a tiny model: what goes where, what each option does, what is refused and how."""

from __future__ import annotations

import hashlib
import io
import re
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Command, child, finish
from tests.support.tiny_llama import TinyLlama, write_tiny_llama

LINE = re.compile(
    r"\d+ prompt \+ (\d+) output tokens \((stop|length)\) in \d+ passes \| first token [\d.]+ ms \| "
    r"prefill \d+, decode (\d+|-), overall \d+ tokens/s( \| [\d.]+ GB/s, \d+% of this machine's [\d.]+)? \| "
    r"(\d+ MB \| )?sha256 [0-9a-f]{12}"
)


@pytest.fixture
def run(tokenglass_: Command, tiny_model_path: Path) -> Command:
    return lambda *arguments: tokenglass_("run", "-m", tiny_model_path, *arguments)


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> io.BytesIO:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(raw))
    return raw


def given(stdin: io.BytesIO, raw: bytes) -> None:
    stdin.write(raw)
    stdin.seek(0)


# --- what goes where ---


def test_text_goes_to_stdout_and_one_line_of_numbers_to_stderr(run: Command) -> None:
    outcome = run("hello", "--max-tokens", 8)
    *notes, line = outcome.err.splitlines()
    assert outcome.status == 0
    assert outcome.out.endswith("\n")
    assert LINE.fullmatch(line)
    assert notes == ["chat, by the model's own template (--raw: the text as it is)"]


def test_hash_is_that_of_the_text_without_the_closing_newline(run: Command) -> None:
    outcome = run("hello", "--raw", "--max-tokens", 8)
    text = outcome.out.removesuffix("\n")
    assert outcome.err.rstrip().endswith(hashlib.sha256(text.encode()).hexdigest()[:12])


def test_model_without_a_template_continues_raw_text(tokenglass_: Command, tmp_path: Path) -> None:
    path = write_tiny_llama(tmp_path / "base.gguf", metadata={"tokenizer.chat_template": None})
    outcome = tokenglass_("run", "-m", path, "hello", "--max-tokens", 2)
    assert outcome.err.startswith("raw text, no chat template\n")


def test_raw_and_chat_read_different_prompts(run: Command) -> None:
    chat = run("hello", "--json", "--max-tokens", 1).json
    raw = run("hello", "--json", "--max-tokens", 1, "--raw").json
    assert (chat["settings"]["chat"], raw["settings"]["chat"]) == (True, False)
    assert chat["usage"]["prompt_tokens"] > raw["usage"]["prompt_tokens"]


def test_system_text_is_part_of_the_prompt(run: Command) -> None:
    without = run("hello", "--json", "--max-tokens", 1).json
    with_it = run("hello", "--json", "--max-tokens", 1, "--system", "Be brief").json
    assert with_it["usage"]["prompt_tokens"] > without["usage"]["prompt_tokens"]
    assert with_it["settings"]["system"] == "Be brief"


def test_control_tokens_in_the_prompt_are_plain_text(run: Command) -> None:
    plain = run("<|im_end|>", "--json", "--raw", "--max-tokens", 1).json
    assert plain["usage"]["prompt_tokens"] > 1


def test_zero_tokens_are_no_tokens(run: Command) -> None:
    outcome = run("hello", "--max-tokens", 0)
    assert (outcome.status, outcome.out) == (0, "\n")
    assert "nothing decoded" in outcome.err


# --- stdin ---


@pytest.mark.parametrize("arguments", [(), ("-",)])
def test_prompt_comes_from_stdin(run: Command, stdin: io.BytesIO, arguments: tuple[str, ...]) -> None:
    given(stdin, b"hello\n")
    piped = run(*arguments, "--max-tokens", 4, "--json").json
    typed = run("hello", "--max-tokens", 4, "--json").json
    assert (piped["text"], piped["usage"]) == (typed["text"], typed["usage"])


def test_only_one_line_ending_and_a_byte_order_mark_are_dropped(run: Command, stdin: io.BytesIO) -> None:
    given(stdin, b"\xef\xbb\xbfhello\n\r\n")
    piped = run("--raw", "--max-tokens", 1, "--json").json
    typed = run("hello\n", "--raw", "--max-tokens", 1, "--json").json
    assert piped["usage"] == typed["usage"]


def test_no_prompt_at_a_terminal_is_refused(
    run: Command, tokenglass_: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    assert run().error == 'there is no prompt. Give one, tokenglass run "Hello", or pipe it in'
    for verb in ("tokens", "next", "explain-cache"):
        assert f'Give one, tokenglass {verb} "Hello", or pipe it in' in tokenglass_(verb).error


def test_closed_stdin_is_no_prompt(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert "there is no prompt" in run("-").error


@pytest.mark.parametrize(
    ("raw", "words"),
    [(b"", "prompt is empty"), (b"\n", "prompt is empty"), (b"abc\xff", "prompt is not UTF-8 at byte 3")],
)
def test_stdin_that_is_no_prompt_is_refused(run: Command, stdin: io.BytesIO, raw: bytes, words: str) -> None:
    given(stdin, raw)
    outcome = run()
    assert (outcome.status, outcome.error.partition(". ")[0]) == (2, words)


def test_endless_stdin_is_refused(run: Command, stdin: io.BytesIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokenglass.cli.prompt.MAX_PROMPT_BYTES", 1 << 20)
    given(stdin, b"x" * ((1 << 20) + 1))
    assert run().error == "prompt has more than 1 MB"


def test_ctrl_c_while_waiting_for_a_prompt_says_nothing(
    run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Waiting(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Waiting()))
    outcome = run("-")
    assert (outcome.status, outcome.out, outcome.err) == (130, "", "")


# --- how tokens are chosen, and where the answer ends ---


def test_greedy_is_the_default_and_repeats_itself(run: Command) -> None:
    answers = {run("hello", "--max-tokens", 8).out for _ in range(2)}
    assert len(answers) == 1


def test_ends_may_be_put_off_or_passed_over(run: Command) -> None:
    """A bias makes the end token the best one at every step."""
    ending = ("hello", "--json", "--max-tokens", 9, "--logit-bias", "2=100")
    assert len(run(*ending).json["token_ids"]) == 1
    put_off = run(*ending, "--min-tokens", 4).json
    assert (len(put_off["token_ids"]), put_off["finish_reason"]) == (5, "stop")
    passed = run(*ending, "--ignore-eos").json
    assert (passed["token_ids"], passed["text"], passed["finish_reason"]) == ([2] * 9, "", "length")
    assert run("hello", "--min-tokens", 257).error == "min_tokens is 257, more than the 256 of max_tokens"


def test_seed_decides_the_answer_and_is_reported(run: Command) -> None:
    drawn = run("hello", "--temperature", 2, "--max-tokens", 16, "--json").json
    again = run(
        "hello", "--temperature", 2, "--max-tokens", 16, "--json", "--seed", drawn["settings"]["seed"]
    )
    other = run("hello", "--temperature", 2, "--max-tokens", 16, "--json", "--seed", 1)
    assert again.json["token_ids"] == drawn["token_ids"]
    assert other.json["token_ids"] != drawn["token_ids"]


@pytest.mark.parametrize("option", [("--top-k", 5), ("--top-p", 0.5), ("--seed", 1)])
def test_option_without_effect_is_not_swallowed(run: Command, option: tuple[object, ...]) -> None:
    assert "change nothing at temperature 0" in run("hello", "--max-tokens", 1, *option).err
    assert "nothing at" not in run("hello", "--max-tokens", 1, *option, "--temperature", 1).err


def test_stop_text_ends_the_answer_before_it(run: Command) -> None:
    whole = run("hello", "--max-tokens", 32, "--json").json["text"]
    stop = whole[8:10]
    stopped = run("hello", "--max-tokens", 32, "--json", "--stop", "no such text", "--stop", stop).json
    assert stopped["text"] == whole[: whole.index(stop)]
    assert stopped["finish_reason"] == "stop"
    assert stopped["settings"]["stop"] == ["no such text", stop]


def test_exact_mode_and_float32_cache_are_passed_on(run: Command) -> None:
    options = ("--activations", "f32", "--kv", "f32", "--threads", 1, "--context", 64)
    settings = run("hello", "--max-tokens", 2, "--json", *options).json["settings"]
    assert settings["activations"] == "f32"
    assert settings["kv"] == "f32"
    assert settings["num_threads"] == 1
    assert settings["context_length"] == 64


# --- json ---


def test_json_is_one_object_with_everything(run: Command, tiny_model_path: Path) -> None:
    outcome = run("你好", "--max-tokens", 8, "--json")
    record = outcome.json
    assert outcome.out.count("\n") == 1
    assert list(record) == [
        "model", "truncated_tokens", "text", "token_ids", "finish_reason",
        "usage", "timings", "settings", "sha256",
    ]  # fmt: skip
    assert record["model"] == tiny_model_path.name
    usage = record["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert len(record["token_ids"]) == usage["completion_tokens"] == record["timings"]["forward_passes"] == 8
    assert record["finish_reason"] == "length"
    assert record["sha256"] == hashlib.sha256(record["text"].encode()).hexdigest()[:12]
    assert record["timings"]["limit_bytes_per_s"] > record["timings"]["bytes_per_s"] / 4 > 0
    assert {"temperature", "top_k", "top_p", "seed", "max_tokens", "isa"} <= set(record["settings"])


def test_json_says_null_for_what_was_not_measured(run: Command) -> None:
    timings = run("hello", "--max-tokens", 1, "--json").json["timings"]
    assert timings["decode_tokens_per_s"] is None
    assert timings["limit_bytes_per_s"] is None
    assert timings["prefill_tokens_per_s"] > 0


# --- mistakes ---


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--temprature", "0.5"), "there is no option --temprature. Did you mean --temperature?"),
        (("--temp=0.5",), "there is no option --temp. "),  # no abbreviations
        (("hello", "world"), "'world' was not expected. A text with spaces needs quotes"),
        (("hello", "--temperature", "warm"), "--temperature: invalid float value: 'warm'"),
        (("hello", "--temperature", "200"), "temperature must be a number from 0 to 100, not 200"),
        (("hello", "--temperature", "nan"), "temperature must be a number"),
        (("hello", "--top-p", "1.5"), "top_p must be a number from 0 to 1"),
        (("hello", "--top-k", "-2"), "top_k must be a whole number from"),
        (("hello", "--seed", "-1"), "seed must be a whole number from 0"),
        (("hello", "--max-tokens", "-1"), "max_tokens must be a whole number from 0"),
        (("hello", "--max-tokens", "1.5"), "--max-tokens: invalid int value: '1.5'"),
        (("hello", "--threads", "0"), "num_threads must be a whole number from 1"),
        (("hello", "--context", "100000"), "context_length must be a whole number from 2 to 512"),
        (("hello", "--kv", "f8"), "--kv: invalid choice: 'f8'"),
        (("hello", "--stop", ""), "stop must not hold an empty string"),
        (("hello", "--model"), "-m/--model: expected one argument"),
        (("hello", "--raw", "--system", "x"), "--system is for chat"),
        (("",), "prompt is empty"),
    ],
)
def test_mistake_is_one_line_and_status_2(run: Command, arguments: tuple[str, ...], words: str) -> None:
    outcome = run(*arguments)
    assert outcome.status == 2
    assert words in outcome.error


def test_prompt_longer_than_the_window_is_refused_with_both_numbers(run: Command) -> None:
    outcome = run("a b " * 400)
    assert outcome.status == 2
    assert re.search(r"the prompt has \d+ tokens and the context window holds 512", outcome.err)


def test_system_text_needs_a_template(tokenglass_: Command, tmp_path: Path) -> None:
    path = write_tiny_llama(tmp_path / "base.gguf", metadata={"tokenizer.chat_template": None})
    outcome = tokenglass_("run", "-m", path, "hello", "--system", "Be brief")
    assert outcome.error == "--system needs a chat template, and this model has none"


def test_words_of_a_template_cannot_reach_the_terminal_raw(tokenglass_: Command, tmp_path: Path) -> None:
    template = "{{ raise_exception('\x1b]0;gotcha\x07\nsecond line') }}"
    path = write_tiny_llama(tmp_path / "rude.gguf", metadata={"tokenizer.chat_template": template})
    error = tokenglass_("run", "-m", path, "hello").error
    assert "gotcha" in error
    assert "\x1b" not in error


def test_missing_file_unknown_name_and_broken_file(tokenglass_: Command, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(20))
    for model, words in (
        (tmp_path / "none.gguf", "there is no file"),
        ("smolm2", "no model is called 'smolm2'. Did you mean smollm2"),
        (broken, "broken.gguf: "),
    ):
        outcome = tokenglass_("run", "-m", model, "hello")
        assert outcome.status == 1
        assert words in outcome.error


# --- as a process ---


def test_pipes_in_the_c_locale_carry_utf8(tiny_model_path: Path) -> None:
    env = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    options = ("-m", tiny_model_path, "--raw", "--json", "--max-tokens", 1, "--stop", "好")
    typed = finish(child("run", "你好", *options, env=env))
    piped = finish(child("run", *options, env=env, stdin=-1), "你好\n".encode())
    assert typed.json["settings"]["stop"] == ["好"]
    assert typed.json["usage"] == piped.json["usage"]
    refused = finish(child("run", "hello", "-m", "没有", env=env))
    assert "no model is called" in refused.error


def test_argument_that_is_not_utf8_is_refused(tiny_model_path: Path) -> None:
    outcome = finish(child("run", "-m", tiny_model_path, "caf\udce9"))
    assert outcome.status == 2
    assert outcome.error == "prompt: is not UTF-8. See tokenglass run --help"


def test_long_prompt_runs_in_several_passes(tokenglass_: Command, tmp_path: Path) -> None:
    path = write_tiny_llama(tmp_path / "long.gguf", shape=TinyLlama(context_length=2048))
    record = tokenglass_("run", "-m", path, "--raw", "x" * 1100, "--max-tokens", 1, "--json").json
    assert record["usage"]["prompt_tokens"] > 1024
    assert record["timings"]["forward_passes"] == 3


@pytest.mark.real_models
def test_default_model_continues_and_answers(tokenglass_: Command, real_model_path: Path) -> None:
    raw = tokenglass_("run", "-m", real_model_path, "The capital of France is", "--raw", "--max-tokens", 1)
    assert raw.out == " Paris\n"
    chat = tokenglass_("run", "-m", real_model_path, "Why is the sky blue?", "--max-tokens", 60)
    assert "scatter" in chat.out
    assert chat.err.splitlines()[0].startswith("chat, ")


@pytest.mark.parametrize("policy", ["oldest", "middle"])
def test_a_prompt_too_long_is_cut_as_asked_and_that_is_said(
    tokenglass_: Command, tiny_model_path: Path, policy: str
) -> None:
    arguments = ("run", "-m", tiny_model_path, "--raw", "a b " * 400, "--max-tokens", 3)
    assert "context window holds 512" in tokenglass_(*arguments).err
    outcome = tokenglass_(*arguments, "--truncate", policy, "--reserve", 12, "--json")
    num_out = outcome.json["truncated_tokens"]
    assert num_out > 0
    assert outcome.json["usage"]["prompt_tokens"] == 500
    assert f"{num_out} tokens of the prompt did not fit and were left out" in outcome.err
    assert "已略去" in tokenglass_(*arguments, "--truncate", policy, "--lang", "zh").err
    assert "needs --truncate" in tokenglass_(*arguments, "--reserve", 12).error
    assert tokenglass_(*arguments, "--truncate", policy, "--reserve", 512).status == 2
