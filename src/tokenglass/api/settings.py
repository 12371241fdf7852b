"""The keywords that every question takes: how an answer is drawn, and how messages become text."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypedDict, cast

from tokenglass.errors import ParameterError
from tokenglass.sampling import Sampling


class ChatSettings(TypedDict, total=False):
    """How messages become text, as keywords.

    tools: JSON schemas, or Python functions with type hints and docstrings; continue_final_message: the
    answer goes on where the last message ends; template_args: further variables of the chat template.
    """

    tools: Sequence[Mapping[str, Any] | Callable[..., Any]] | None
    documents: Sequence[Mapping[str, Any]] | None
    continue_final_message: bool | str
    template_args: Mapping[str, Any] | None


class Settings(ChatSettings, total=False):
    """`ChatSettings` and the fields of `Sampling`, as keywords."""

    temperature: float | None
    top_k: int | None
    top_p: float | None
    min_p: float | None
    typical_p: float | None
    repetition_penalty: float | None
    presence_penalty: float | None
    frequency_penalty: float | None
    logit_bias: Mapping[int, float] | None
    seed: int | None


def divided(settings: Settings) -> tuple[ChatSettings, dict[str, Any]]:
    """The settings of the chat, and all others."""
    chat = {name: value for name, value in settings.items() if name in ChatSettings.__annotations__}
    rest = {name: value for name, value in settings.items() if name not in chat}
    return cast(ChatSettings, chat), rest


def sampling_of(sampling: Sampling | None, settings: Mapping[str, Any]) -> Sampling:
    """The settings to use. ParameterError: an unknown name, or both forms at once."""
    known = [field.name for field in fields(Sampling)]
    for name in settings:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise ParameterError(
                name,
                "is no setting",
                remedy=f"Did you mean {near[0]}?" if near else f"Known are {', '.join(known)}",
            )
    if sampling is None:
        return Sampling(**settings)
    if settings:
        raise ParameterError("sampling", f"is given, and {next(iter(settings))} too: put all settings in one")
    return sampling
