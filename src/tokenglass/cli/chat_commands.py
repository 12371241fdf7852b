"""The lines of a chat that begin with a slash."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from tokenglass.cli.chat_session import Message, Session
from tokenglass.cli.columns import clip, left
from tokenglass.cli.language import listed, t
from tokenglass.cli.output import say
from tokenglass.cli.parser import wrap_columns
from tokenglass.errors import ParameterError, TokenglassError, UsageError
from tokenglass.sampling import Sampling
from tokenglass.sampling.params import check_integer

MAX_FILE_BYTES = 16 << 20
SETTINGS = tuple(field.name for field in fields(Sampling) if field.name != "logit_bias")


def run_command(session: Session, line: str) -> bool:
    """Does what `line` says; False: the chat is over. TokenglassError: it cannot be done, nothing changed."""
    name, _, argument = line.partition(" ")
    if name == "/quit":
        return False
    command = COMMANDS.get(name)
    if command is None:
        near = get_close_matches(name, [*COMMANDS, "/quit"], n=1)
        help_ = t("/help lists them; // begins a message with a slash")
        meant = t("Did you mean {near}?", near=near[0]) + " " if near else ""
        raise UsageError(t("there is no command {word}", word=name), remedy=meant + help_)
    command(session, argument.strip())
    return True


def show_help(session: Session, argument: str) -> None:
    """Lists the commands."""
    for usage, what in (
        ("/system TEXT", t("what the model is told before everything; without TEXT: shows it")),
        ("/retry", t("another answer to the last message")),
        ("/params", t("shows the settings; /params temperature=0.7 top_p=0.9 changes them")),
        ("/tokens", t("what fills the context window")),
        ("/clear", t("begins a new chat; the system message stays")),
        ("/save FILE", t("writes the chat as JSON")),
        ("/load FILE", t("goes on with a saved chat")),
        ("/quit", t("ends the chat, like Ctrl-D (Ctrl-C only stops an answer)")),
    ):
        say(left(usage, 14) + what)


def system(session: Session, argument: str) -> None:
    """Sets or shows the system message."""
    if argument:
        session.set_system(argument)
    else:
        say(session.system or t("no system message of yours (the model's template may have its own)"))


def retry(session: Session, argument: str) -> None:
    """Asks the last message again."""
    session.retry()


def params(session: Session, argument: str) -> None:
    """Shows the settings, or changes them: all of those given, or none when one is wrong."""
    words = argument.split()
    if len(words) == 2 and "=" not in argument:  # "/params temperature 0.7"
        words = ["=".join(words)]
    given = dict(_setting(word) for word in words)
    max_tokens = given.pop("max_tokens", session.max_tokens)
    check_integer("max_tokens", max_tokens, 1, 1 << 40)
    session.sampling = replace(session.sampling, **given)
    session.max_tokens = max_tokens
    if "seed" in given:
        session.is_seed_given = given["seed"] is not None
    shown = {name: getattr(session.sampling, name) for name in SETTINGS}
    shown["seed"] = session.sampling.seed if session.is_seed_given else "none"
    words = [f"{name}={value}" for name, value in {**shown, "max_tokens": session.max_tokens}.items()]
    for line in wrap_columns(" ".join(words), 79):
        say(line)


def _setting(word: str) -> tuple[str, Any]:
    name, _, value = word.partition("=")
    name = name.replace("-", "_")
    if name not in (*SETTINGS, "max_tokens"):
        near = get_close_matches(name, [*SETTINGS, "max_tokens"], n=1)
        names = listed([*SETTINGS, "max_tokens"])
        meant = t("Did you mean {near}?", near=near[0]) if near else t("There are {names}", names=names)
        raise UsageError(t("there is no setting {name}", name=name), remedy=meant)
    if value.lower() in ("none", "off") and name != "max_tokens":
        return name, None
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            pass
    example = t("Like this: /params {name}=1", name=name)
    raise ParameterError(name, t("must be a number, not {value}", value=repr(value)), remedy=example)


def tokens(session: Session, argument: str) -> None:
    """What fills the window, message by message."""
    num_used, num_texts = session.num_tokens, 0
    for message in session.messages:
        num = len(session.engine.tokenizer.encode(message["content"], bos=False))
        num_texts += num
        say(clip(f"{num:7} {left(message['role'], 10)} {' '.join(message['content'].split())}", 79))
    say(f"{num_used - num_texts:7} {t('what the template adds')}")
    window = session.engine.context_length
    say(
        t(
            "{used} of {window} tokens ({percent}%)",
            used=num_used,
            window=window,
            percent=f"{100 * num_used / window:.1f}",
        )
    )


def clear(session: Session, argument: str) -> None:
    """Forgets what was said."""
    session.messages = session.messages[:1] if session.system is not None else []
    session.saved_to = None


def save(session: Session, argument: str) -> None:
    """Writes the chat as JSON. A file that this chat did not write is never overwritten."""
    path = _path(argument, "/save")
    text = json.dumps({"model": session.model, "messages": session.messages}, ensure_ascii=False, indent=1)
    try:
        with path.open("w" if session.saved_to == str(path) else "x", encoding="utf-8") as file:
            file.write(text + "\n")
    except FileExistsError:
        raise UsageError(t("{path} exists already", path=path), remedy=t("Choose another name")) from None
    except (OSError, ValueError) as error:
        raise TokenglassError(t("cannot write {path}: {reason}", path=path, reason=_reason(error))) from error
    session.saved_to = str(path)
    say(t("{n} messages in {path}", n=len(session.messages), path=path))


def load(session: Session, argument: str) -> None:
    """Goes on with a saved chat; `messages` as in OpenAI's API."""
    path = _path(argument, "/load")
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        raise TokenglassError(t("cannot read {path}: {reason}", path=path, reason=_reason(error))) from error
    try:
        saved = json.loads(raw) if len(raw) <= MAX_FILE_BYTES else None
    except (ValueError, RecursionError):
        saved = None
    messages = saved.get("messages") if isinstance(saved, dict) else saved
    if not isinstance(messages, list):
        raise UsageError(t("{path} is no saved chat", path=path), remedy=t("/save FILE writes one"))
    for i, message in enumerate(messages):
        if (key := _missing(message)) is not None:
            what = t("{path} is no saved chat: messages[{i}] has no usable {key}", path=path, i=i, key=key)
            raise UsageError(what, remedy=t("/save FILE writes one"))
    checked: list[Message] = [{"role": m["role"], "content": m["content"]} for m in messages]
    if any(message["role"] == "system" for message in checked[1:]):
        raise UsageError(t("{path} has a system message that is not the first", path=path))
    if checked:
        session.engine.tokenizer.encode_chat(checked, **session.template)  # the template may refuse them
    session.messages, session.saved_to = checked, None
    say(t("{n} messages in {path}", n=len(checked), path=path))


def _missing(message: object) -> str | None:
    """The key that a message of a saved chat lacks or that holds something else; None: it is whole."""
    if not isinstance(message, dict) or message.get("role") not in ("system", "user", "assistant"):
        return "role"
    return None if isinstance(message.get("content"), str) else "content"


def _path(argument: str, command: str) -> Path:
    if not argument:
        raise UsageError(
            t("{command} needs the name of a file", command=command), remedy=f"{command} chat.json"
        )
    try:
        return Path(argument).expanduser()
    except RuntimeError:
        return Path(argument)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


COMMANDS: dict[str, Callable[[Session, str], None]] = {
    "/help": show_help,
    "/system": system,
    "/retry": retry,
    "/params": params,
    "/tokens": tokens,
    "/clear": clear,
    "/save": save,
    "/load": load,
}
