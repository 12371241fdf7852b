"""From what the user typed or piped to the ids the model reads: as a chat where the model has a template."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tokenglass.cli.language import t
from tokenglass.cli.parser import Parser
from tokenglass.engine.context import POLICIES, Fitted, Policy
from tokenglass.errors import ParameterError, UsageError
from tokenglass.tokens import Tokenizer

TEMPLATE_OPTIONS = {"tools": "tools", "documents": "documents", "template_args": "variables"}
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


def add_template(parser: Parser) -> None:
    """Adds the group of options that a chat template reads; their values are None where not given."""
    add = parser.add_argument_group("what the chat template is given").add_argument
    add("--tools", type=objects, metavar="FILE", help="tools it may call: a JSON list of their schemas")
    add("--documents", type=objects, metavar="FILE", help="documents to answer from: a JSON list of objects")
    add(
        "--template-args",
        type=variables,
        metavar="JSON",
        help="further variables of the template, like '{\"enable_thinking\": false}'",
    )


def template_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """What was given of the group, as the arguments of `Tokenizer.encode_chat`."""
    named = {name: values[option] for option, name in TEMPLATE_OPTIONS.items()}
    return {name: value for name, value in named.items() if value is not None}


def check_form(values: Mapping[str, Any]) -> None:
    """ParameterError: an option for chats beside --raw."""
    if values["raw"]:
        for name in given_for_chat(values):
            raise ParameterError(name, "is for chat, and --raw continues the text as it is")


def is_chat(tokenizer: Tokenizer, values: Mapping[str, Any]) -> bool:
    """Whether the prompt goes through the model's chat template. ParameterError: an option for chats where
    there is none.
    """
    if not tokenizer.chat.exists:
        for name in given_for_chat(values):
            raise ParameterError(name, "needs a chat template, and this model has none")
    return tokenizer.chat.exists and not values["raw"]


def given_for_chat(values: Mapping[str, Any]) -> list[str]:
    """The options given that only a chat has use for, `--system` first."""
    return [
        "--" + option.replace("_", "-")
        for option in ("system", *TEMPLATE_OPTIONS)
        if values.get(option) is not None
    ]


def encode_prompt(
    tokenizer: Tokenizer, text: str, values: Mapping[str, Any], *, chat: bool, policy: Policy | None = None
) -> Fitted:
    """The ids of the prompt, made to fit where a policy says how. In either form, what looks like a control
    token in it is plain text.
    """
    if not chat:
        ids = tokenizer.encode(text)
        return policy.fit(ids, bos_id=tokenizer.vocabulary.bos_id) if policy else Fitted(ids)
    system = values["system"]
    messages = [{"role": "system", "content": system}] if system is not None else []
    messages.append({"role": "user", "content": text})

    def encode(messages: Sequence[Mapping[str, Any]]) -> list[int]:
        return tokenizer.encode_chat(messages, **template_of(values))

    return policy.fit_chat(tokenizer, messages, encode) if policy else Fitted(encode(messages))


def add_truncation(parser: Parser) -> None:
    """Adds what happens to a prompt that does not fit the window."""
    add = parser.add_argument_group("a prompt longer than the window").add_argument
    add(
        "--truncate",
        choices=POLICIES,
        help="leave out its oldest part or its middle, and say how much (default: refuse it)",
    )
    add("--reserve", type=int, metavar="N", help="tokens kept free for the answer (default: --max-tokens)")


def policy_of(values: Mapping[str, Any], window: int) -> Policy | None:
    """What was asked for; None: refuse. ParameterError: --reserve alone, or one out of range."""
    if values["truncate"] is None:
        if values["reserve"] is not None:
            raise ParameterError("--reserve", "needs --truncate")
        return None
    return Policy(values["truncate"], window, values["reserve"], values["max_tokens"])


def truncation_note(fitted: Fitted) -> str | None:
    """What a user must be told."""
    if not fitted.truncated_tokens:
        return None
    return t("{n} tokens of the prompt did not fit and were left out", n=fitted.truncated_tokens)


def objects(argument: str) -> list[dict[str, Any]]:
    """The JSON list of objects in a file."""
    try:
        with Path(argument).open(encoding="utf-8") as file:
            value = json.loads(file.read(MAX_PROMPT_BYTES))
    except OSError as error:
        raise argparse.ArgumentTypeError(f"cannot read {argument}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise argparse.ArgumentTypeError(f"{argument} is no JSON") from None
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise argparse.ArgumentTypeError(f"{argument} must hold a JSON list of objects")
    return value


def variables(argument: str) -> dict[str, Any]:
    """A JSON object that was given as it is."""
    try:
        value = json.loads(argument)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f'must be a JSON object, like {{"a": true}}, not {argument!r}')
    return value
