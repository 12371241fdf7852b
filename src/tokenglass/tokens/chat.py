"""Chat messages to text by the model's own template, with the origin of every character known.

The template comes out of the model file, which nobody should trust: it runs in a process of its own
(`template_process.py`). The messages come from users: whatever they hold, the only control tokens in the
result are those the template wrote itself (`origin.py`).
What templates may use: https://huggingface.co/docs/transformers/chat_templating
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tokenglass.errors import ChatTemplateError, ParameterError
from tokenglass.tokens.continuing import REASONING_KEYS, check_continued, marked, up_to_mark
from tokenglass.tokens.origin import ControlTexts, Disguise, TemplateWords, characters
from tokenglass.tokens.template_process import TemplateProcess

KNOWN_ROLES = {"system", "developer", "user", "assistant", "model", "tool", "function", "ipython"}
MAX_DEPTH = 64  # of lists and objects inside a message
SAYING_KEYS = ("content", "tool_calls", *REASONING_KEYS)  # a message without any of them is a slip


@dataclass(frozen=True)
class Span:
    """`text` and where it came from; `token_id` is set for control tokens, which only templates write."""

    text: str
    origin: Literal["control", "template", "user"]
    token_id: int | None = None


@dataclass(frozen=True)
class RenderedChat:
    """A chat as the model will read it. `segments` is what gets encoded; `spans()` is for the eye."""

    text: str
    segments: tuple[tuple[str, int | None], ...]  # text between control tokens, or a control token and its id
    is_traced: bool  # every character of the user's was followed through the template
    disguised: str  # as long as `text`
    disguise: Disguise

    def spans(self) -> list[Span]:
        """The text by origin, in order.

        Space after a user's character counts as the user's. Where the template looks into the text, words it
        looks for ("</think>") count as its own. With `is_traced` false it changed the text (`upper`) and only
        punctuation was followed: the rest counts as the template's.
        """
        spans, at = [], 0
        for text, token_id in self.segments:
            if token_id is not None:
                spans.append(Span(text, "control", token_id))
            else:
                spans += self._by_origin(text, self.disguised[at : at + len(text)])
            at += len(text)
        return spans

    def _by_origin(self, text: str, disguised: str) -> Iterator[Span]:
        start = 0
        is_user = [self.disguise.hides(char) for char in disguised]
        for i in range(1, len(text) + 1):
            if i < len(text) and text[i].isspace():
                is_user[i] = is_user[i - 1]
            if i == len(text) or is_user[i] != is_user[start]:
                yield Span(text[start:i], "user" if is_user[start] else "template")
                start = i


class ChatTemplate:
    """A model's chat template, parsed when first used: a broken one does not stop the model from loading.

    `source` None: the model has none, and `render` says so. Of several, by name, "tool_use" writes chats with
    tools and "default" all others, as in Transformers. `special_tokens`: the variables `bos_token`, ….
    """

    def __init__(
        self,
        source: str | Mapping[str, str] | None,
        *,
        control: Mapping[str, int],
        special_tokens: Mapping[str, str] | None = None,
    ) -> None:
        named = source if isinstance(source, Mapping) else {"default": source}
        self.source = named.get("default")
        self._with_tools: ChatTemplate | None = None
        if tool_use := named.get("tool_use"):
            self._with_tools = ChatTemplate(tool_use, control=control, special_tokens=special_tokens)
        self._control = ControlTexts(control)
        self._special_tokens = dict(special_tokens or {})
        self._process = TemplateProcess(self.source or "")
        self._words: TemplateWords | None = None

    @property
    def exists(self) -> bool:
        """Whether any chat can be rendered; with only a "tool_use" template those with tools."""
        return self.source is not None or self._with_tools is not None

    def start(self) -> None:
        """Start the template's process ahead of the first chat; costs nothing to wait for."""
        if self.source is not None:
            self._process.start()

    def close(self) -> None:
        """End the template's process."""
        self._process.close()
        if self._with_tools is not None:
            self._with_tools.close()

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool | str = False,
        variables: Mapping[str, Any] | None = None,
    ) -> RenderedChat:
        """The chat as text, its control tokens told apart from user text.

        render([{"role": "user", "content": "hi"}], add_generation_prompt=False).text
        # '<|im_start|>user\\nhi<|im_end|>\\n'

        `continue_final_message`: the text ends where the last message ends, so that the answer goes on with
        it, and there is no generation prompt; a string names the message's key instead of "content".
        `variables` are further template variables, for example
        `{"enable_thinking": False}`.
        ParameterError: there are no messages; a message is no object, has no usable role, says nothing, or
        holds what is not JSON; a variable has a name of ours; the last message has no text to continue.
        ChatTemplateError: no template; it refuses these messages (its own words are kept); it is broken or
        without end; it changes user text so that control tokens cannot be told apart.
        """
        if tools is not None and self._with_tools is not None:
            return self._with_tools.render(
                messages,
                tools=tools,
                documents=documents,
                add_generation_prompt=add_generation_prompt,
                continue_final_message=continue_final_message,
                variables=variables,
            )
        if self.source is None:
            raise ChatTemplateError(
                "This model has no chat template", remedy="Give it plain text, or a model made for chat"
            )
        if self._words is None:
            self._words = TemplateWords.of(self.source, self._control)
        fixed: dict[str, Any] = {
            **self._special_tokens,
            "add_generation_prompt": add_generation_prompt and not continue_final_message,
        }
        for name in variables or {}:
            if name in fixed or name in ("messages", "tools", "documents"):
                raise ParameterError(f"variables.{name}", "is set from elsewhere")
        if not messages:
            raise ParameterError("messages", "is empty")
        roles = [_checked_role(message, i, self._control) for i, message in enumerate(messages)]
        user = {
            **{name: _json(value, name) for name, value in (variables or {}).items()},
            "messages": [_without_nulls(message, i) for i, message in enumerate(messages)],
            "tools": None if tools is None else _json(list(tools), "tools"),
            "documents": None if documents is None else _json(list(documents), "documents"),
        }
        shown = user
        key = "content" if continue_final_message is True else continue_final_message
        if key:
            check_continued(user["messages"], key, self.source)
            shown = {**user, "messages": marked(user["messages"], key)}
        chars = characters(user)
        taken = characters(shown) | characters([*fixed.values(), self.source, *self._control.ids])
        visible = {char for char in chars if not char.isspace()}  # templates trim and split at spaces
        strict, usual = self._words.only_keys(), self._words
        hinges = self._control.hinges(visible)
        for hidden, words in ((visible, strict), (visible, usual), (hinges, usual)):  # the strictest first
            disguise = Disguise(hidden, taken, words)
            disguised = {name: disguise.put_on(value) for name, value in user.items()}
            for message, role in zip(disguised["messages"], roles, strict=True):
                message["role"] = role
            if key:
                disguised["messages"] = marked(disguised["messages"], key)
            plain_text, disguised_text = self._process.render(
                {**shown, **fixed}, {**disguised, **fixed}, disguise.chars
            )
            if key:
                plain_text = up_to_mark(plain_text, user["messages"][-1], key)
                disguised_text = disguised_text and disguised_text[: len(plain_text)]
            if disguised_text is not None and disguise.take_off(disguised_text) == plain_text:
                parts = self._control.split(disguised_text)
                segments = tuple((plain_text[start:end], token_id) for start, end, token_id in parts)
                return RenderedChat(plain_text, segments, hidden is visible, disguised_text, disguise)
        raise ChatTemplateError(
            "The chat template changes the messages so that its control tokens cannot be told from user text",
            remedy="Take the control tokens' punctuation out of the messages",
        )


def _checked_role(message: object, index: int, control: ControlTexts) -> str:
    """The message's role. Templates write it beside their own text, so it must not spell a control token."""
    where = f"messages[{index}]"
    if not isinstance(message, Mapping):
        raise ParameterError(where, f"must be an object with a role, not {type(message).__name__}")
    role = message.get("role")
    if not isinstance(role, str) or not re.fullmatch(r"[a-z_]{1,32}", role):
        raise ParameterError(
            f"{where}.role", "must be 1 to 32 of the characters a-z and _, such as user or assistant"
        )
    if role not in KNOWN_ROLES and control.overlap(role):
        known = ", ".join(sorted(KNOWN_ROLES))
        raise ParameterError(f"{where}.role", f"{role!r} is part of a control token; use one of {known}")
    return role


def _without_nulls(message: Mapping[str, Any], index: int) -> dict[str, Any]:
    """The message as JSON; as in Transformers without null keys, and reasoning under each of its names."""
    plain = {key: value for key, value in _json(message, f"messages[{index}]").items() if value is not None}
    if not any(key in plain for key in SAYING_KEYS):
        raise ParameterError(f"messages[{index}].content", "is missing")
    reasoning = next((plain[key] for key in REASONING_KEYS if key in plain), None)
    if reasoning is not None:
        plain = {"thinking": reasoning, **plain, "reasoning_content": reasoning}
    return plain


def _json(value: Any, where: str, depth: int = 0) -> Any:
    """`value` as new plain JSON. ParameterError names the place of whatever is not."""
    if depth > MAX_DEPTH:
        raise ParameterError(where.split(".")[0].split("[")[0], f"is nested deeper than {MAX_DEPTH} levels")
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        if not value.isascii():
            check_text(value, where)
        return value
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise ParameterError(where, "has a key that is not a string")
        return {_json(key, where): _json(item, f"{where}.{key}", depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(value)]
    raise ParameterError(where, f"must be JSON, not {type(value).__name__}")


def check_text(text: str, where: str) -> None:
    """ParameterError if `text` has half of a surrogate pair, which no encoding of Unicode can hold."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ParameterError(where, f"has half of a surrogate pair at character {error.start}") from None
