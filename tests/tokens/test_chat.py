"""Chat templates (B18-B20): the text jinja2 gives, clear refusals, bounds on what a template can do."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tokens import templates
from tests.tokens.vocabularies import byte_level_metadata, tokenizer_of
from tokenglass.errors import ChatTemplateError, ParameterError
from tokenglass.tokens import ChatTemplate
from tokenglass.tokens.template_process import TemplateProcess

USER = {"role": "user", "content": " What is <b>1 & 1</b>?\n 你好 "}
ASSISTANT = {"role": "assistant", "content": '<think>\nhm\n</think>\n\nIt\'s "2" 😊'}
SYSTEM = {"role": "system", "content": "Be brief."}
CALL = {"type": "function", "function": {"name": "add", "arguments": {"b": 1.5, "a": [1, None, True, "<é>"]}}}
TOOL = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Adds 'two' <numbers>",
        "parameters": {
            "type": "object",
            "properties": {"Zahl": {"type": "number"}, "a": {"enum": ["x", "y"]}},
        },
    },
}
CHATS: list[list[dict[str, Any]]] = [
    [USER],
    [USER, ASSISTANT, USER],
    [SYSTEM, USER, ASSISTANT, USER],
    [USER, {"role": "assistant", "content": "", "tool_calls": [CALL]}, {"role": "tool", "content": "2.5"}],
    [USER, {"role": "assistant", "content": None, "tool_calls": [CALL, CALL]}],
    [{"role": "user", "content": "<tool_response>x"}, {"role": "tool", "content": "1", "name": "f"}, USER],
    [{"role": "user", "content": [{"type": "text", "text": "Look"}, {"type": "image"}], "name": "Ann"}],
    [{"role": "user", "content": ""}],
]


def made(source: str | None) -> ChatTemplate:
    return ChatTemplate(source, control=templates.CONTROL, special_tokens=templates.SPECIAL_TOKENS)


@pytest.fixture(scope="module")
def chat_templates() -> Iterator[dict[str, ChatTemplate]]:
    found = {name: made(source) for name, source in templates.TEMPLATES.items()}
    yield found
    for template in found.values():
        template.close()


@pytest.mark.parametrize("tools", [None, [TOOL]], ids=["no-tools", "tools"])
@pytest.mark.parametrize("chat", range(len(CHATS)))
@pytest.mark.parametrize("name", templates.TEMPLATES)
def test_the_text_is_what_jinja2_gives(
    chat_templates: dict[str, ChatTemplate], name: str, chat: int, tools: list[dict[str, Any]] | None
) -> None:
    jinja2 = pytest.importorskip("jinja2")
    messages = [
        {key: value for key, value in message.items() if value is not None} for message in CHATS[chat]
    ]
    variables = {
        **templates.SPECIAL_TOKENS,
        "messages": messages,
        "tools": tools,
        "add_generation_prompt": True,
    }
    try:
        expected = templates.jinja2_text(templates.TEMPLATES[name], variables)
    except (jinja2.TemplateError, TypeError) as error:
        with pytest.raises(ChatTemplateError) as refusal:
            chat_templates[name].render(CHATS[chat], tools=tools)
        own_words = str(error) if type(error) is jinja2.TemplateError else "failed"
        assert own_words in str(refusal.value)
    else:
        rendered = chat_templates[name].render(CHATS[chat], tools=tools)
        assert rendered.text == expected
        assert rendered.is_traced or "[{'type'" in expected, "Python's repr escapes disguises"
        assert "".join(span.text for span in rendered.spans()) == expected


def test_generation_prompt_and_further_variables(chat_templates: dict[str, ChatTemplate]) -> None:
    qwen = chat_templates["qwen"]
    assert qwen.render([USER], add_generation_prompt=False).text.endswith("<|im_end|>\n")
    assert qwen.render([USER], variables={"enable_thinking": False}).text.endswith("</think>\n\n")
    for name in ("bos_token", "messages", "tools", "add_generation_prompt"):
        with pytest.raises(ParameterError, match=rf"variables\.{name} is set from elsewhere"):
            qwen.render([USER], variables={name: "x"})


def test_the_template_refuses_with_its_own_words(chat_templates: dict[str, ChatTemplate]) -> None:
    with pytest.raises(ChatTemplateError, match="refuses these messages: System role not supported"):
        chat_templates["gemma"].render([SYSTEM, USER])
    with pytest.raises(ChatTemplateError, match="Conversation roles must alternate"):
        chat_templates["mistral"].render([USER, USER])
    assert chat_templates["gemma"].render([USER]).text, "and serves the next chat"


def test_a_model_without_template_says_so(tmp_path: Path) -> None:
    metadata = byte_level_metadata()
    del metadata["tokenizer.chat_template"]
    with pytest.raises(ChatTemplateError, match="This model has no chat template"):
        tokenizer_of(tmp_path, metadata).encode_chat([USER])


def test_a_broken_template_harms_nothing_but_chats(tmp_path: Path) -> None:
    metadata = byte_level_metadata() | {"tokenizer.chat_template": "{% if %}"}
    tokenizer = tokenizer_of(tmp_path, metadata)
    assert tokenizer.decode(tokenizer.encode("hi")) == "hi"
    with pytest.raises(ChatTemplateError, match="failed: syntax error"):
        tokenizer.encode_chat([USER])


NESTED = "{% for a in range(100000) %}" * 2 + "{% endfor %}" * 2
DOUBLING = (
    "{% set n = namespace(x='ab') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}{{ n.x }}"
)


@pytest.mark.parametrize(
    "source",
    [
        NESTED,
        "{{ range(10 ** 10) | list }}",
        "{{ 'a' * 10 ** 8 }}",
        "{{ 'a' * 8000000 }}",
        DOUBLING,
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}",
        "{{ messages.append(messages) }}{{ messages | string }}",
        "{{ '{:100000000000}'.format(1) }}",
        "{{ '{:1000000000}'.format(1) | length }}",
        "{{ " + "not " * 60000 + "1 }}",
        "{{ " + "(" * 60000 + "1 }}",
        "{{" * 200000,
    ],
    ids=range(13),
)
def test_a_hostile_template_is_stopped_and_the_process_lives(source: str) -> None:
    template = made(source)
    start = time.monotonic()
    with pytest.raises(ChatTemplateError):
        template.render([USER])
    assert time.monotonic() - start < 5
    with pytest.raises(ChatTemplateError):
        template.render([USER])  # a new process has taken the place of a broken one
    template.close()


@pytest.mark.parametrize(
    "walk",
    [
        "cycler.__init__.__globals__.os.popen(COMMAND).read()",
        "''.__class__.__mro__[1].__subclasses__()",
        "raise_exception.__globals__['__builtins__']['__import__']('os').system(COMMAND)",
        "strftime_now.__globals__.sys.modules.os.system(COMMAND)",
        "messages.__class__.__base__.__subclasses__()",
        "self.__init__.__globals__",
        "(messages | attr('__class__')).mro()",
        "namespace.__init__.__globals__",
        "dict.mro()",
        "messages[0].items.__self__.__class__.__mro__",
    ],
)
def test_a_template_cannot_reach_the_host(tmp_path: Path, walk: str) -> None:
    mark = tmp_path / "mark"
    template = made("{{ " + walk.replace("COMMAND", f"'touch {mark}'") + " }}")
    try:
        text = template.render([USER]).text
    except ChatTemplateError:
        text = ""
    template.close()
    assert not mark.exists()
    assert "class" not in text
    assert "module" not in text


@pytest.mark.parametrize(
    "statement", ["{% include '/etc/passwd' %}", "{% import 'os' as os %}", "{% extends 'x' %}"]
)
def test_a_template_cannot_load_another(statement: str) -> None:
    with pytest.raises(ChatTemplateError, match="failed"):
        made(statement).render([USER])


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        (["hi"], r"messages\[0\] must be an object"),
        ([USER, {"content": "x"}], r"messages\[1\]\.role must be"),
        ([{"role": "User", "content": "x"}], r"messages\[0\]\.role must be"),
        ([{"role": "a" * 33, "content": "x"}], r"messages\[0\]\.role must be"),
        ([USER, {"role": "user"}], r"messages\[1\]\.content is missing"),
        ([{"role": "user", "content": None}], r"messages\[0\]\.content is missing"),
        ([{"role": "user", "text": "x"}], r"messages\[0\]\.content is missing"),
        ([{"role": "user", "content": {1}}], r"messages\[0\]\.content must be JSON, not set"),
        ([{"role": "user", "content": {1: 2}}], r"messages\[0\]\.content has a key that is not a string"),
        (
            [{"role": "user", "content": ["a", "\udc00"]}],
            r"messages\[0\]\.content\[1\] has half of a surrogate pair",
        ),
    ],
)
def test_messages_that_are_none_are_refused_by_place(messages: list[Any], problem: str) -> None:
    with pytest.raises(ParameterError, match=problem):
        made(templates.CHATML).render(messages)


def test_deep_nesting_is_refused() -> None:
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ParameterError, match="messages is nested deeper than 64 levels"):
        made(templates.CHATML).render([{"role": "user", "content": deep}])


def test_null_keys_are_missing_and_reasoning_has_its_names() -> None:
    template = made("{{ 'x' in messages[0] }} {{ messages[0].reasoning_content }} {{ messages[0].thinking }}")
    assert template.render([{"role": "assistant", "x": None, "reasoning": "hm"}]).text == "False hm hm"


def test_a_chat_gets_one_bos_however_it_comes(tmp_path: Path) -> None:
    for writes_bos in ("", "{{ bos_token }}", "{{ bos_token }}{{ bos_token }}"):
        for adds_bos in (False, True):
            metadata = byte_level_metadata(control=("<s>",))
            metadata["tokenizer.chat_template"] = writes_bos + "{{ messages[0].content }}"
            bos_id = len(metadata["tokenizer.ggml.tokens"]) - 1
            tokenizer = tokenizer_of(tmp_path, metadata, add_bos_token=adds_bos, bos_token_id=bos_id)
            ids = tokenizer.encode_chat([{"role": "user", "content": "<s>x"}])
            assert ids.count(bos_id) == bool(writes_bos or adds_bos)
            assert ids[-4:] == tokenizer.encode("<s>x", bos=False)
            tokenizer.chat.close()


def test_interrupted_question_gets_no_later_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    process = TemplateProcess("{{ text }}")
    assert process.render({"text": "first"}) == ("first", None)

    class Interrupting:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def readline(self) -> bytes:
            raise KeyboardInterrupt

        def close(self) -> None:
            self.inner.close()

    assert process._process is not None
    monkeypatch.setattr(process._process, "stdout", Interrupting(process._process.stdout))
    with pytest.raises(KeyboardInterrupt):
        process.render({"text": "second"})
    assert process.render({"text": "third"}) == ("third", None)
    process.close()


@pytest.mark.skipif(not hasattr(os, "getpgid"), reason="no process groups")
def test_ctrl_c_of_a_terminal_does_not_reach_the_template() -> None:
    process = TemplateProcess("{{ text }}")
    process.start()
    assert process._process is not None
    assert os.getpgid(process._process.pid) != os.getpgid(0)
    process.close()
