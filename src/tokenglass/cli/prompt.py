"""From what the user typed or piped to the ids the model reads: as a chat where the model has a template."""

from __future__ import annotations

import sys

from tokenglass.errors import ParameterError, UsageError
from tokenglass.tokens import Tokenizer

MAX_PROMPT_BYTES = 16 << 20  # more than any context window holds; stdin may be endless


def read_prompt(argument: str | None, verb: str) -> str:
    """The prompt: `argument`, or stdin for None and "-". UsageError: there is none; ParameterError: it is
    empty, not UTF-8, or too long to be one. `verb` is what an example in them is of.

    One line ending at the end of stdin is dropped: `echo hello | tokenglass run` asks "hello".
    """
    if argument is not None and argument != "-":
        text = argument
    elif sys.stdin is None or (argument is None and sys.stdin.isatty()):
        raise UsageError("there is no prompt", remedy=f'Give one, tokenglass {verb} "Hello", or pipe it in')
    else:
        text = _read_stdin()
    if not text:
        raise ParameterError("prompt", "is empty", remedy=f'Give some text: tokenglass {verb} "Hello"')
    return text


def _read_stdin() -> str:
    raw = sys.stdin.buffer.read(MAX_PROMPT_BYTES + 1)
    if len(raw) > MAX_PROMPT_BYTES:
        raise ParameterError("prompt", f"has more than {MAX_PROMPT_BYTES >> 20} MB")
    try:
        return raw.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ParameterError(
            "prompt", f"is not UTF-8 at byte {error.start}", remedy="Convert it first (iconv)"
        ) from None


def is_chat(tokenizer: Tokenizer, *, raw: bool, system: str | None) -> bool:
    """Whether the prompt goes through the model's chat template. ParameterError: `system` without one."""
    has_template = tokenizer.chat.source is not None
    if system is not None and not has_template:
        raise ParameterError("--system", "needs a chat template, and this model has none")
    return has_template and not raw


def encode_prompt(tokenizer: Tokenizer, text: str, *, chat: bool, system: str | None) -> list[int]:
    """The ids of the prompt. In either form, what looks like a control token in it is plain text."""
    if not chat:
        return tokenizer.encode(text)
    messages = [{"role": "system", "content": system}] if system is not None else []
    return tokenizer.encode_chat([*messages, {"role": "user", "content": text}])
