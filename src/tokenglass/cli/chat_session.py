"""The state of a chat and what one turn does to it. A turn that fails leaves everything as it was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

from tokenglass.bench.machine import peak_memory_bytes
from tokenglass.cli.journal import add_note
from tokenglass.cli.language import t
from tokenglass.cli.output import say, write
from tokenglass.cli.prompt import policy_of, truncation_note
from tokenglass.cli.scripts import script_hint
from tokenglass.engine import Engine, Piece
from tokenglass.engine.context import Fitted
from tokenglass.engine.conversation import Conversation
from tokenglass.errors import ContextFullError, TokenglassError, UsageError
from tokenglass.sampling import Sampling
from tokenglass.sampling.params import check_integer

Message = dict[str, str]


class Session:
    """Messages, settings, and the cache of what was said. Invariant: `messages` are what the next turn shows
    the model, in order; a system message, if any, is the first.
    """

    def __init__(
        self,
        engine: Engine,
        model: str,
        *,
        sampling: Sampling,
        is_seed_given: bool,
        max_tokens: int,
        system: str | None = None,
        is_json: bool = False,
        template: Mapping[str, Any] | None = None,
        truncation: Mapping[str, Any] | None = None,
    ) -> None:
        check_integer("max_tokens", max_tokens, 1, 1 << 40)
        self.engine = engine
        self.model = model
        self.template = dict(template or {})  # tools, documents, variables: as for `encode_chat`
        self.conversation = Conversation(engine, self.template)
        self.sampling = sampling
        self.is_seed_given = is_seed_given  # otherwise each answer gets a new one
        self.max_tokens = max_tokens
        self.is_json = is_json
        self.truncation = truncation or {"truncate": None, "reserve": None}
        policy_of({**self.truncation, "max_tokens": max_tokens}, engine.context_length)
        self.is_hinted = False  # that the model can hardly write a script: said once
        self.saved_to: str | None = None
        self.messages: list[Message] = []
        self.set_system(system or "")

    def set_system(self, text: str) -> None:
        """Replaces the system message; an empty text removes it."""
        rest = self.messages[1:] if self.system is not None else self.messages
        self.messages = [*([{"role": "system", "content": text}] if text else []), *rest]

    @property
    def system(self) -> str | None:
        if self.messages and self.messages[0]["role"] == "system":
            return self.messages[0]["content"]
        return None

    @property
    def num_tokens(self) -> int:
        """Tokens of everything said so far, as the model would read it."""
        if not self.messages:
            return 0
        encode = self.engine.tokenizer.encode_chat
        return len(encode(self.messages, add_generation_prompt=False, **self.template))

    def ask(self, text: str) -> None:
        """A turn. TokenglassError: there is no answer, and the message is not kept."""
        if not self.is_hinted and (hint := script_hint(self.engine.tokenizer, text)):
            self.is_hinted = True
            say(hint)
        self._answer([*self.messages, {"role": "user", "content": text}])

    def retry(self) -> None:
        """Another answer to the last message. UsageError: there is none."""
        messages = list(self.messages)
        while messages and messages[-1]["role"] == "assistant":
            messages.pop()
        if not messages or messages[-1]["role"] != "user":
            raise UsageError(t("there is nothing to ask again"), remedy=t("Say something first"))
        if self.sampling.is_greedy or self.is_seed_given:
            say(t("the same settings give the same answer; /params temperature=0.7 seed=none varies it"))
        self._answer(messages)

    def _answer(self, messages: list[Message]) -> None:
        """Streams the answer to `messages` (the last is the user's) and keeps both."""
        sampling = self.sampling if self.is_seed_given else replace(self.sampling, seed=None)
        pieces: list[Piece] = []
        is_stopped = False
        try:
            fitted = self._fitted(messages)
            if note := truncation_note(fitted):
                say(note)
            with closing(
                self.conversation.answer(
                    messages, sampling=sampling, max_tokens=self.max_tokens, prompt_ids=fitted.ids
                )
            ) as stream:
                for piece in stream:
                    pieces.append(piece)
                    self._show(piece.text)
        except KeyboardInterrupt:
            is_stopped = True
        except ContextFullError as error:
            raise UsageError(
                t(
                    "the chat would have {n} tokens and the context window holds {window}",
                    n=error.prompt_tokens,
                    window=error.context_length,
                ),
                remedy=t("/clear begins a new one, /save FILE keeps this one"),
            ) from None
        except TokenglassError:
            self._show("\n" if pieces else "")
            raise
        text = "".join(piece.text for piece in pieces)
        self._show("" if text.endswith("\n") else "\n")
        if pieces:
            self.messages = [*messages, {"role": "assistant", "content": text}]
            self._tell(pieces, text, fitted.truncated_tokens, is_stopped=is_stopped)
            self._note(pieces, text, sampling)
        else:
            say(t("stopped before the first token: the message was not kept"))
        if is_stopped:
            raise KeyboardInterrupt

    def _show(self, text: str) -> None:
        if not self.is_json:
            write(text)

    def _fitted(self, messages: list[Message]) -> Fitted:
        """What of the chat the model reads. ContextFullError."""
        encode = self.conversation.encode
        policy = policy_of({**self.truncation, "max_tokens": self.max_tokens}, self.engine.context_length)
        return (
            policy.fit_chat(self.engine.tokenizer, messages, encode) if policy else Fitted(encode(messages))
        )

    def _tell(self, pieces: list[Piece], text: str, truncated_tokens: int, *, is_stopped: bool) -> None:
        """What the turn cost and how much of the window is used."""
        timings, window = pieces[-1].timings, self.engine.context_length
        num_used = timings.prompt_tokens + timings.output_tokens
        reason = pieces[-1].finish_reason or "interrupted"
        if self.is_json:
            usage = {
                "prompt_tokens": timings.prompt_tokens,
                "completion_tokens": timings.output_tokens,
                "total_tokens": num_used,
                "prompt_tokens_details": {"cached_tokens": timings.cached_tokens},
            }
            ids = [token for piece in pieces for token in piece.token_ids]
            record = {
                "text": text,
                "token_ids": ids,
                "finish_reason": reason,
                "usage": usage,
                "truncated_tokens": truncated_tokens,
            }
            write(json.dumps({**record, "context_length": window}, ensure_ascii=False) + "\n")
            return
        say(
            t(
                "{used} of {window} tokens | prompt {cached} cached + {computed} computed, {ms} ms "
                "| {rate} tokens/s",
                used=num_used,
                window=window,
                cached=timings.cached_tokens,
                computed=timings.prompt_tokens - timings.cached_tokens,
                ms=f"{timings.time_to_first_token_s * 1e3:.0f}",
                rate=f"{timings.decode_tokens_per_s:.0f}" if timings.output_tokens > 1 else "-",
            )
        )
        if num_used >= window:
            say(t("the window is full: /clear begins a new chat, /save FILE keeps this one"))
        elif is_stopped:
            say(t("stopped; what was said stays in the chat"))
        elif reason == "length":
            say(t("cut off at {n} tokens; /params max_tokens=N allows more", n=timings.output_tokens))

    def _note(self, pieces: list[Piece], text: str, sampling: Sampling) -> None:
        timings = pieces[-1].timings
        add_note(
            "chat",
            model=self.model,
            prompt_tokens=timings.prompt_tokens,
            output_tokens=timings.output_tokens,
            finish_reason=pieces[-1].finish_reason or "interrupted",
            forward_passes=timings.forward_passes,
            time_to_first_token_s=timings.time_to_first_token_s,
            decode_tokens_per_s=timings.decode_tokens_per_s if timings.output_tokens > 1 else None,
            tokens_per_s=timings.tokens_per_s,
            memory_bytes=peak_memory_bytes(),
            seed=None if sampling.is_greedy else sampling.seed,
            sha256=hashlib.sha256(text.encode()).hexdigest()[:12],
        )
