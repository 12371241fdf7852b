"""`--tools`, `--documents` and `--template-args`: what they give the chat template, for each verb."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Command, child, finish
from tests.support.tiny_llama import write_tiny_llama
from tokenglass.tokens import Tokenizer

TEMPLATE = "{{ tools | tojson }}{{ documents | tojson }}{{ x }}{{ messages[0].content }}"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    metadata = {"tokenizer.chat_template": TEMPLATE}
    (tmp_path / "f.json").write_text('[{"name": "北"}]', encoding="utf-8")
    return write_tiny_llama(tmp_path / "m.gguf", metadata=metadata)


def test_every_verb_gives_them_to_the_template(tokenglass_: Command, path: Path) -> None:
    file = path.with_name("f.json")
    given = ("--tools", file, "--documents", file, "--template-args", '{"x": 7}')
    tokenizer = Tokenizer.from_path(path)
    listed = [{"name": "北"}]
    rendered = tokenizer.chat.render(
        [{"role": "user", "content": "hi"}], tools=listed, documents=listed, variables={"x": 7}
    )
    ids = tokenizer.encode_rendered(rendered)
    tokenizer.chat.close()
    assert rendered.text == '[{"name": "北"}][{"name": "北"}]7hi'
    assert tokenglass_("next", "-m", path, "hi", "--json", *given).json["prompt_ids"] == ids
    run = tokenglass_("run", "-m", path, "hi", "--json", "--max-tokens", 1, *given).json
    assert run["settings"]["tools"] == listed
    assert run["settings"]["template_args"] == {"x": 7}
    assert run["usage"]["prompt_tokens"] == len(ids)
    shown = tokenglass_("tokens", "-m", path, "hi", "--chat", "--json", *given).json
    assert [token["id"] for token in shown["models"][0]["tokens"]] == ids
    chat = child("chat", "-m", path, "--json", "--max-tokens", 1, *given, stdin=subprocess.PIPE)
    assert finish(chat, b"hi\n").json["usage"]["prompt_tokens"] == len(ids)


def test_they_are_for_chats(tokenglass_: Command, path: Path) -> None:
    outcome = tokenglass_("run", "-m", path, "hi", "--raw", "--template-args", "{}")
    assert outcome.error == "--template-args is for chat, and --raw continues the text as it is"
    write_tiny_llama(path, metadata={"tokenizer.chat_template": None})
    for verb in ("run", "next", "tokens"):
        outcome = tokenglass_(verb, "-m", path, "hi", "--tools", path.with_name("f.json"))
        assert outcome.error == "--tools needs a chat template, and this model has none"


@pytest.mark.parametrize(
    ("option", "text", "problem"),
    [
        ("--tools", "[1", "is no JSON"),
        ("--tools", "{}", "must hold a JSON list of objects"),
        ("--documents", "[" * 99999, "is no JSON"),
        ("--template-args", "[1]", "must be a JSON object"),
    ],
)
def test_what_no_template_can_be_given(
    tokenglass_: Command, tmp_path: Path, option: str, text: str, problem: str
) -> None:
    (tmp_path / "f").write_text(text)
    value = text if option == "--template-args" else tmp_path / "f"
    assert problem in tokenglass_("run", "hi", option, value).error
    assert "cannot read" in tokenglass_("run", "hi", "--tools", tmp_path / "none").error
