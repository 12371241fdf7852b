"""`tokenglass tokens` on the tiny vocabulary: pieces, places, counts, lookups, hostile text, a terminal."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Command, child, finish
from tests.support.tiny_llama import write_tiny_llama
from tokenglass.cli.columns import width


@pytest.fixture
def tokens(tokenglass_: Command, tiny_model_path: Path) -> Command:
    return lambda *arguments: tokenglass_("tokens", "-m", tiny_model_path, *arguments)


def test_pieces_table_and_counts(tokens: Command) -> None:
    lines = tokens("the 天").out.splitlines()
    assert lines[0] == "t│he│ │‹e5›│‹a4›│‹a9›"
    assert lines[3].split() == ["0", "119", '"t"', "74", "0"]
    assert lines[7].split()[-3:] == ["4", "天", "2/3"]
    assert ["tokens", "of", "the", "text", "6"] in [line.split() for line in lines]
    assert "rule of thumb: 2 to 3 tokens" in lines


def test_offsets_cut_the_text_into_its_tokens(tokens: Command) -> None:
    text = "the water 好!"
    record = tokens(text, "--json").json
    model = record["models"][0]
    assert [text[token["start"] : token["end"]] for token in model["tokens"]] == [
        token["text"] for token in model["tokens"]
    ]
    assert b"".join(bytes(token["bytes"]) for token in model["tokens"]) == text.encode()
    assert model["is_exact"]
    assert (record["num_chars"], record["num_bytes"]) == (len(text), len(text.encode()))
    assert sum(cost["chars"] for cost in model["scripts"].values()) == len(text)


def test_with_and_without_special_tokens(tokens: Command) -> None:
    model = tokens("hi", "--json").json["models"][0]
    assert model["num_tokens"] == model["num_tokens_raw"] == 2
    assert model["num_tokens_chat"] > 10
    chat = tokens("hi", "--chat", "--json").json["models"][0]
    assert len(chat["tokens"]) == chat["num_tokens_chat"] == model["num_tokens_chat"]
    assert [token["text"] for token in chat["tokens"] if token["special"]] == [
        "<|im_start|>", "<|im_end|>", "<|im_start|>",
    ]  # fmt: skip
    assert chat["scripts"] == model["scripts"]


def test_a_models_bos_is_counted_and_stands_nowhere(tokenglass_: Command, tmp_path: Path) -> None:
    path = write_tiny_llama(tmp_path / "bos.gguf", metadata={"tokenizer.ggml.add_bos_token": True})
    outcome = tokenglass_("tokens", "-m", path, "hi", "--json").json["models"][0]
    assert (outcome["num_tokens"], outcome["num_tokens_raw"]) == (2, 3)
    assert (outcome["tokens"][0]["special"], outcome["tokens"][0]["start"]) == (True, None)


def test_control_tokens_are_text_unless_asked_for(tokens: Command) -> None:
    assert tokens("<|im_end|>", "--json").json["models"][0]["num_tokens"] > 1
    assert tokens("<|im_end|>", "--control", "--json").json["models"][0]["num_tokens"] == 1


def test_models_stand_side_by_side(tokenglass_: Command, tiny_model_path: Path, tmp_path: Path) -> None:
    other = write_tiny_llama(tmp_path / "other.gguf", metadata={"tokenizer.chat_template": None})
    outcome = tokenglass_("tokens", "-m", tiny_model_path, "-m", other, "你好 the")
    assert "tiny-llama\n" in outcome.out
    chats = next(
        line for line in outcome.out.splitlines() if line.startswith("with special tokens, as a chat")
    )
    assert chats.endswith(" -")
    models = tokenglass_("tokens", "-m", tiny_model_path, "-m", other, "你好 the", "--json").json["models"]
    assert [model["model"] for model in models] == ["tiny-llama", "other"]


def test_a_file_is_read_and_its_name_is_not(tokens: Command, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("hi\n", encoding="utf-8")
    outcome = tokens(path, "--json")
    assert outcome.json["num_chars"] == 3
    assert "reading the file" in outcome.err
    assert tokens(path, "--text", "--json").json["num_chars"] == len(str(path))


def test_a_pipe_with_a_name_is_read_like_a_file(tokens: Command) -> None:
    reader, writer = os.pipe()  # what <(command) is
    os.write(writer, b"the hi")
    os.close(writer)
    outcome = tokens(f"/dev/fd/{reader}", "--json")
    os.close(reader)
    assert outcome.json["num_chars"] == 6


def test_a_device_without_an_end_is_refused_and_a_folder_is_words(tokens: Command, tmp_path: Path) -> None:
    assert "file has more than 16 MB" in tokens("/dev/zero").err
    assert tokens(tmp_path, "--json").json["num_chars"] == len(str(tmp_path))


def test_file_that_is_no_text_is_refused(tokens: Command, tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(b"\x89PNG")
    assert tokens(path).status == 2
    surrogate = tmp_path / "half.txt"
    surrogate.write_bytes(b"ab\xed\xa0\xbd")  # half of a pair, as careless programs write it
    assert "file is not UTF-8 at byte 2" in tokens(surrogate).err


def test_empty_text_has_no_tokens(tokens: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for outcome in (tokens(""), tokens("", "--json")):
        assert outcome.status == 0
    assert outcome.json["models"][0]["num_tokens"] == 0
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert tokens("-", "--json").json["num_chars"] == 0


def test_half_a_surrogate_pair_is_refused_in_one_line(tokens: Command) -> None:
    outcome = tokens("a\ud83d")
    assert outcome.status == 2
    assert "UTF-8" in outcome.error or "surrogate" in outcome.error


HOSTILE = "a\x1b]0;gotcha\x07\x1b[2J\u202e\u2066b\r\x00\x9b31m\u200b"


def test_nothing_in_a_text_is_obeyed_and_nothing_is_lost(tokens: Command) -> None:
    outcome = tokens("--text", HOSTILE)
    assert not set(outcome.out) & set("\x1b\x07\u202e\u2066\r\x00\x9b\u200b")
    record = tokens("--text", HOSTILE, "--json").json["models"][0]
    assert b"".join(bytes(token["bytes"]) for token in record["tokens"]) == HOSTILE.encode()


def test_lines_fit_80_columns_in_chinese_too(tokens: Command) -> None:
    text = "天空 the 你好 " * 5 + "的"
    for lang in ("en", "zh"):
        outcome = tokens(text, "--lang", lang)
        assert all(width(line) <= 80 for line in outcome.out.splitlines()[1:])
    assert "词元" in outcome.out


def test_a_megabyte_is_counted_and_listed(tokens: Command) -> None:
    text = "the 天water " * 80_000
    outcome = tokens("--text", text, "--limit", 5)
    assert outcome.status == 0
    assert "more (--limit 0 lists all" in outcome.out
    assert len(outcome.out) < 5000


# --- the vocabulary ---


def test_vocabulary_by_text_bytes_and_id(tokens: Command) -> None:
    assert '" the"' in tokens("--vocab", "the").out
    found = tokens("--vocab", "0xE4BDA0", "--json").json["tokens"]
    assert [token["text"] for token in found] == ["你"]
    assert tokens("--vocab", "#2", "--json").json["tokens"][0]["text"] == "<|im_end|>"


def test_exact_and_short_matches_come_first(tokens: Command) -> None:
    found = [token["text"] for token in tokens("--vocab", "in", "--json").json["tokens"]]
    assert found[0] == "in"
    assert len(found) > 2


def test_vocabulary_by_regular_expression(tokens: Command) -> None:
    record = tokens("--vocab", "/^ [st]$/", "--json").json
    assert sorted(token["text"] for token in record["tokens"]) == [" s", " t"]


def test_limit_says_what_it_left_out(tokens: Command) -> None:
    out = tokens("--vocab", "e", "--limit", 2).out.splitlines()
    assert len(out) == 3
    assert "2 shown" in out[-1]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("/(/", "is no regular expression"),
        ("#999999", "ids end at #"),
        ("", "is empty"),
        ("x" * 2000, "has more than 1000 characters"),
    ],
)
def test_bad_patterns_are_one_line(tokens: Command, pattern: str, words: str) -> None:
    outcome = tokens("--vocab", pattern)
    assert outcome.status == 2
    assert words in outcome.error


@pytest.mark.skipif(sys.platform == "win32", reason="no interval timer")
def test_endless_expression_is_stopped(
    tokenglass_: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tokenglass.cli.vocab.REGEX_S", 0.2)
    text = "a" * 60 + "!"
    path = write_tiny_llama(tmp_path / "long.gguf")
    with monkeypatch.context() as patched:
        patched.setattr("tokenglass.tokens.Vocabulary.token_bytes", lambda self, i: text.encode())
        outcome = tokenglass_("tokens", "-m", path, "--vocab", "/^(a+)+$/")
    assert outcome.status == 2
    assert "takes longer than 0.2 s" in outcome.error


def test_special_tokens_and_what_they_are_for(tokens: Command) -> None:
    lines = tokens("--special").out.splitlines()
    assert lines[2].split() == [
        "#2",
        '"<|im_end|>"',
        "3c",
        "7c",
        "69",
        "6d",
        "5f",
        "6…",
        "control",
        "EOS",
        "PAD",
        "end",
    ]
    assert lines[-1].startswith("3 of ")


# --- only the tokenizer is read; a terminal ---


def test_weights_are_not_read(tokenglass_: Command, tiny_model_path: Path, tmp_path: Path) -> None:
    whole = tiny_model_path.read_bytes()
    path = tmp_path / "poisoned.gguf"
    path.write_bytes(whole[:-4096] + b"\xff" * 4096)
    assert tokenglass_("tokens", "-m", path, "hi").status == 0


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminal")
@pytest.mark.parametrize("no_color", [False, True])
def test_terminal_gets_colours_unless_told_otherwise(tiny_model_path: Path, no_color: bool) -> None:
    import pty

    reader, writer = pty.openpty()
    env = {"TERM": "xterm-256color", "COLUMNS": "80", **({"NO_COLOR": "1"} if no_color else {})}
    process = child(
        "tokens", "-m", tiny_model_path, "--text", HOSTILE.replace("\0", ""), env=env, stdout=writer
    )
    os.close(writer)
    raw = b""
    try:
        while block := os.read(reader, 4096):
            raw += block
    except OSError:  # the terminal's other end is closed
        pass
    os.close(reader)
    assert finish(process).status == 0
    text = raw.decode()
    assert "]0;gotcha" not in text.replace("\\x1b", "")  # every letter is a token of its own
    assert ("\x1b[3" in text) is not no_color
    assert "\x1b[2J" not in text
    assert "\u202e" not in text


def test_json_is_one_line(tokens: Command) -> None:
    out = tokens("the", "--json").out
    assert out.count("\n") == 1
    json.loads(out)


def test_a_model_that_is_not_here_gets_an_estimate_with_its_name(
    tokenglass_: Command, tiny_model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("TOKENGLASS_HOME", str(tmp_path)), ("TIKTOKEN_CACHE_DIR", str(tmp_path))):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TOKENGLASS_OFFLINE", "1")
    for name in ("gpt-4o", "bert-base-chinese", "qwen3"):
        outcome = tokenglass_("tokens", "-m", name, "the 天")
        assert outcome.status == 0
        assert outcome.out.startswith(f"{name}: rule of thumb: 2 to 3 tokens\n  (an estimate, no count")
        assert f"{name} was not counted" in outcome.err
    models = ("-m", tiny_model_path, "-m", "gpt-4o")
    record = tokenglass_("tokens", *models, "the 天", "--json").json
    assert [model["num_tokens"] for model in record["models"]] == [6]
    assert "downloads are switched off" in record["not_counted"]["gpt-4o"]
    assert tokenglass_("tokens", "-m", "gpt-4o", "--special").status == 1


def test_a_tokenizers_file_or_folder_counts(tokenglass_: Command, tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text("[UNK]\n今\n天\nhello\n", encoding="utf-8")
    (tmp_path / "config.json").write_text('{"max_position_embeddings": 512}')
    for argument in (path, tmp_path):
        model = tokenglass_("tokens", "-m", argument, "今天 Hello", "--json").json["models"][0]
        assert (model["num_tokens"], model["context_length"], model["is_exact"]) == (3, 512, False)
