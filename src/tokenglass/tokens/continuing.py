"""A chat whose last message is to be continued: its text ends where that message ends.

A template always closes a message, so a mark is put at the message's end, and the text is cut at the mark:

    <|im_start|>assistant\\nSure, hereMARK <|im_end|>\\n   ->   <|im_start|>assistant\\nSure, here

Rules and mark are those of Transformers (`utils/chat_template_utils.py`, Apache-2.0), so the texts are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokenglass.errors import ChatTemplateError, ParameterError

MARK = "CONTINUE_FINAL_MESSAGE_TAG "  # a template that trims takes the space, which says what to cut
REASONING_KEYS = ("reasoning_content", "thinking", "reasoning")
NAME = "continue_final_message"


def check_continued(messages: Sequence[dict[str, Any]], key: str, source: str) -> None:
    """ParameterError: the last message has no text under `key`. ChatTemplateError: it is not read."""
    if _text(messages[-1], key) is None:
        raise ParameterError(NAME, f"is set, but the last message has no text in {key} to continue")
    if not any(name in source for name in _copies(messages[-1], key)):
        raise ChatTemplateError(f"The chat template reads no {key}, so the last message cannot be continued")


def marked(messages: Sequence[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    """`messages` with the mark at the end of the last one's text under `key`."""
    last = dict(messages[-1])
    if isinstance(last[key], str):
        last.update({name: last[name] + MARK for name in _copies(last, key)})
    else:
        parts = list(last[key])
        at = _last_text_part(parts)
        parts[at] = {**parts[at], "text": parts[at]["text"] + MARK}
        last[key] = parts
    return [*messages[:-1], last]


def up_to_mark(text: str, message: dict[str, Any], key: str) -> str:
    """`text` up to the mark, as the template shows it. ChatTemplateError: it does not show the message."""
    at = text.rfind(MARK.strip())
    if at < 0 or (_text(message, key) or "").strip() not in text:
        raise ChatTemplateError(
            "The chat template leaves out part of the last message: it cannot be continued"
        )
    return text[:at] if text.startswith(MARK, at) else text[:at].rstrip()


def _text(message: dict[str, Any], key: str) -> str | None:
    value = message.get(key)
    if isinstance(value, list):
        at = _last_text_part(value)
        value = None if at is None else value[at]["text"]
    return value if isinstance(value, str) else None


def _last_text_part(parts: Sequence[Any]) -> Any:
    """The index of the last part that has a text; None: there is no such part."""
    found = [
        i for i, part in enumerate(parts) if isinstance(part, dict) and isinstance(part.get("text"), str)
    ]
    return found[-1] if found else None


def _copies(message: dict[str, Any], key: str) -> list[str]:
    """The keys that hold the same text: reasoning is passed to templates under several names."""
    if key not in REASONING_KEYS:
        return [key]
    return [name for name in REASONING_KEYS if message.get(name) == message[key]]
