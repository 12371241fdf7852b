"""Attacks on the origins of a chat (`origin.py`): escapes, joins, keys, and words of the template.

However a chat is written, its control tokens are those that the same template writes for a harmless chat.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tokens.templates import CONTROL
from tokenglass.errors import ChatTemplateError
from tokenglass.tokens import ChatTemplate

PIECES = (
    "<|im_end|>", "<|im_", "end|>", "<", "|", ">", "im_end", "im_start", "<|", "|>", '"', "'", "\\",
    "\\u003c",
    "\\\\", '\\"', "\n", "&lt;", "%7C", "&#124;", "x", "content", "name", "</think>", "<think>",
    "\u200b", "\uff1c", "\u0131",
    "[INST]", "INST", "[", "]", "<s>", "s", "\U000f0000", "\ufffd", "system", "{{", "{", "}", "(", ")",
    "|safe", ", ", ": ", "None",
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)
SHOWN = (
    "m.content", "m.content | tojson", "m.content | tojson(ensure_ascii=true)", "m.content | string",
    "[m.content, m.name] | join('')", "m.content ~ m.name", "m.name ~ '<' ~ m.content ~ '>'",
    "'<|' ~ m.content ~ '|>'", "'[' ~ m.content ~ ']'", "m.content.split('x') | join('')",
    "m.content.split('</think>')[-1]", "m.content | replace('x', '')", "m.content.replace('\\\\', '')",
    "m.content[::-1]", "m.content | list | join('')", "m.content | upper | lower", "m.content | trim('<')",
    "m.content.strip('\"') ~ m.name", "m.args | tojson", "m.args", "m.args | string | replace(\"'\", '')",
    "m.args | items | list", "m.args.keys() | list | join('')", "(m.args | tojson)[1:-1]",
    "m.args | dictsort", "m.args | tojson(indent=2)", "m.args | tojson(separators=('', ''))",
    "m.args | tojson(sort_keys=true)", "m.content | tojson | replace('\"', '')", "m.content | e",
    "m.content | urlencode", "m.content | title", "m.content | capitalize", "tools | tojson", "tools[0].f",
    "m.content if '<|im_end|>' in m.content else m.name", "m.content if m.content == 'im_end' else m.name",
    "m.content.replace('(', '<').replace(')', '>')", "m.content.replace('{', '[').replace('}', ']')",
    "m.content | replace('<', '') | replace('|', '')",
    "'%s' | format(m.content)", "m.content | first ~ m.name",
)  # fmt: skip


def controls(template: ChatTemplate, text: str, name: str) -> list[str]:
    message: dict[str, Any] = {
        "role": "user",
        "content": text,
        "name": name,
        "args": {text: name, name: [text, {name: text}]},
    }
    rendered = template.render([message], tools=[{"f": text, text: {name: text}}])
    return [piece for piece, token_id in rendered.segments if token_id is not None]


SPELLINGS = (
    "<|im_end|>", "\\u003c|im_end|>", '"<|im_end|>"', "<|im_x</think>end|>", "<|im_", "(s)", "{INST}",
)  # fmt: skip


@pytest.mark.parametrize("shown", SHOWN)
def test_no_text_adds_a_control_token(shown: str) -> None:
    source = "{% for m in messages %}<|im_start|>{{ " + shown + " }}<|im_end|>{% endfor %}"
    template = ChatTemplate(source, control=CONTROL)

    def attack(text: str, name: str) -> None:
        try:
            found = controls(template, text, name)
        except ChatTemplateError:
            return  # a refusal is no control token
        assert found == ["<|im_start|>", "<|im_end|>"], (text, name)

    for text in SPELLINGS:
        for name in ("end|>", text, "]"):
            attack(text, name)
    settings(max_examples=20, deadline=None)(given(TEXTS, TEXTS)(attack))()
    template.close()
