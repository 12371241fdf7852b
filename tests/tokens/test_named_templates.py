"""Several chat templates of one model: the one for tools, and the default, as Transformers chooses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.tokens.vocabularies import byte_level_metadata, tokenizer_of
from tokenglass.errors import ChatTemplateError, ModelFileError
from tokenglass.tokens import ChatTemplate
from tokenglass.tokens.settings import read_settings

NAMED = {"default": "D", "tool_use": "T", "rag": "R"}
MESSAGES = [{"role": "user", "content": "x"}]


def written(templates: Any, **options: Any) -> str:
    chat = ChatTemplate(templates, control={})
    try:
        return chat.render(MESSAGES, **options).text
    finally:
        chat.close()


def test_tools_choose_the_template() -> None:
    assert written(NAMED) == "D"
    assert written(NAMED, tools=[]) == "T"
    assert written("{{ tools | tojson }}", tools=[{}]) == "[{}]"
    with pytest.raises(ChatTemplateError, match="has no chat template"):
        written({"tool_use": "T"})
    assert written({"tool_use": "T"}, tools=[{}]) == "T"


def test_a_folder_names_them(tmp_path: Path) -> None:
    listed = [{"name": name, "template": text} for name, text in NAMED.items()]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": [*listed, 1, {}]}))
    assert read_settings(tmp_path).chat_template == NAMED
    (tmp_path / "additional_chat_templates").mkdir()
    (tmp_path / "additional_chat_templates" / "tool_use.jinja").write_text("文")
    (tmp_path / "chat_template.jinja").write_text("file")
    assert read_settings(tmp_path).chat_template == {"default": "file", "tool_use": "文"}
    (tmp_path / "additional_chat_templates" / "tool_use.jinja").write_bytes(b"\xff")
    with pytest.raises(ModelFileError, match="not UTF-8"):
        read_settings(tmp_path)


def test_a_gguf_file_names_them(tmp_path: Path) -> None:
    metadata = byte_level_metadata()
    metadata |= {"tokenizer.chat_template": "D", "tokenizer.chat_template.tool_use": "T"}
    chat = tokenizer_of(tmp_path, metadata).chat
    assert chat.render(MESSAGES).text == "D"
    assert chat.render(MESSAGES, tools=[{}]).text == "T"
    chat.close()
