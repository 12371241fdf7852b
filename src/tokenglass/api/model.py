"""A loaded model and what it can be asked. Open this file first.

Thin on purpose: an answer is `engine.stream` (the loop, engine/loop.py), a distribution or a score is one
forward pass (engine/stepping.py, engine/scoring.py), tokens come from `tokens/`. Left out:
downloads with a bar, chat history.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any, TypeAlias, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from tokenglass import engine as engines
from tokenglass.api.answers import Generation, Score, TokenLogprob
from tokenglass.api.distribution import Distribution
from tokenglass.api.settings import ChatSettings, Settings, divided, sampling_of
from tokenglass.api.step import Step
from tokenglass.api.text import Token, Tokens, places, readable
from tokenglass.api.tool_schema import schema_of
from tokenglass.engine import Engine, Piece, Request
from tokenglass.engine.context import Fitted, Policy, Truncate
from tokenglass.engine.embedding import Pooling, embed
from tokenglass.engine.load import Activations, DType, EngineName, KVType, WeightForm
from tokenglass.engine.scoring import Perplexity, continued, perplexity, token_scores
from tokenglass.errors import ParameterError
from tokenglass.hub import DEFAULT_MODEL, model_name, resolve
from tokenglass.sampling import Sampling
from tokenglass.sampling.params import check_integer
from tokenglass.tokens import Vocabulary

Message: TypeAlias = Mapping[str, Any]
Prompt: TypeAlias = str | Tokens | Sequence[int] | Sequence[Message]
MAX_TOKENS = 256  # of an answer, where nothing is said; the same as on the command line


def load(
    name_or_path: str | os.PathLike[str] = DEFAULT_MODEL,
    *,
    num_threads: int | None = None,
    activations: Activations = "int8",
    kv: KVType = "f16",
    context_length: int | None = None,
    weights: WeightForm | None = None,
    engine: EngineName = "tokenglass",
    device: str = "cpu",
    dtype: DType | None = None,
    trust_remote_code: bool = False,
) -> LanguageModel:
    """The model of a .gguf file or a folder, or one known by name, fetched when it is not there yet.

    Options as in `engine.load`. ModelNotFoundError, DownloadError, ModelFileError, ParameterError,
    MissingExtraError.

    import tokenglass as tg
    model = tg.load("smollm2-135m-instruct")
    str(model.generate("The capital of France is", max_tokens=2))    # ' Paris.'
    """
    path = resolve(name_or_path)
    made = engines.load(
        path,
        num_threads=num_threads,
        activations=activations,
        kv=kv,
        context_length=context_length,
        weights=weights,
        engine=engine,
        device=device,
        dtype=dtype,
        trust_remote_code=trust_remote_code,
    )
    return LanguageModel(made, model_name(path))


class LanguageModel:
    """A model in memory. Not for two threads at once; several streams may be open in one.

    A `prompt` is one of: text, which the answer continues as it stands; a list of messages, which go through
    the model's chat template, as `ChatSettings` say; token ids or `Tokens`. Every question may raise
    ParameterError (an empty prompt, a setting out of range), ContextFullError, and ChatTemplateError for
    messages.
    """

    def __init__(self, engine: Engine, name: str) -> None:
        self.engine = engine
        self.name = name
        self._steps: weakref.WeakSet[Step] = weakref.WeakSet()

    @property
    def context_length(self) -> int:
        """Prompt and answer together may have this many tokens."""
        return self.engine.context_length

    @property
    def vocabulary(self) -> Vocabulary:
        return self.engine.tokenizer.vocabulary

    def generate(
        self,
        prompt: Prompt,
        *,
        max_tokens: int | None = MAX_TOKENS,
        min_tokens: int = 0,
        stop: str | Iterable[str] | None = (),
        ignore_eos: bool = False,
        use_cache: bool = True,
        truncate: Truncate | None = None,
        reserve: int | None = None,
        sampling: Sampling | None = None,
        **settings: Unpack[Settings],
    ) -> Generation:
        """The whole answer. max_tokens None: as far as the window goes; min_tokens: at least so many; stop:
        end before any of these texts or control tokens; ignore_eos: go on where the model ends; use_cache
        False: compute the whole text again for every token, like the first loop in a book; truncate: what
        goes from a prompt that is too long (`engine/context.py`; None: it is refused), so that `reserve`
        tokens (None: max_tokens) are free; settings: the
        fields of `Sampling` (or give a `sampling`). The default is the best token each time.

        model.generate("The capital of France is", max_tokens=8).ids
        # (7042, 30, 198, 198, 504, 1797, 1918, 553)
        """
        limits = (max_tokens, min_tokens, stop, ignore_eos)
        request, num_out = self._request(prompt, *limits, use_cache, sampling, settings, truncate, reserve)
        pieces = list(self._read(request))
        return Generation(
            text="".join(piece.text for piece in pieces),
            ids=tuple(token_id for piece in pieces for token_id in piece.token_ids),
            finish_reason=pieces[-1].finish_reason or "length",
            prompt_ids=tuple(request.prompt_ids),
            sampling=request.sampling,
            timings=pieces[-1].timings,
            truncated_tokens=num_out,
        )

    def stream(
        self,
        prompt: Prompt,
        *,
        max_tokens: int | None = MAX_TOKENS,
        min_tokens: int = 0,
        stop: str | Iterable[str] | None = (),
        ignore_eos: bool = False,
        use_cache: bool = True,
        sampling: Sampling | None = None,
        **settings: Unpack[Settings],
    ) -> Generator[Piece]:
        """The answer piece by piece, arguments as for `generate`: each has `.text` (whole characters, maybe
        none yet) and `.token_ids`; the last one has a `.finish_reason`. Leaving the loop ends the answer.
        It begins when the first piece is asked for; a prompt too long for the window is refused then.

        for piece in model.stream("Once upon a time"): print(piece.text, end="", flush=True)
        """
        limits = (max_tokens, min_tokens, stop, ignore_eos)
        return self._read(self._request(prompt, *limits, use_cache, sampling, settings)[0])

    def next(self, prompt: Prompt, top: int = 20, **chat: Unpack[ChatSettings]) -> Distribution:
        """What could come next: logits [vocab], probabilities, entropy; `top` tokens of it are printed.

        model.next("The capital of France is").top(1)    # [TokenProbability(rank=1, id=7042, …)]
        """
        with closing(Step(self.engine, self._prompt_ids(prompt, chat)[0])) as step:
            return step.next(top)

    def step(self, prompt: Prompt, *, sampling: Sampling | None = None, **settings: Unpack[Settings]) -> Step:
        """The prompt, to continue one token at a time by hand; the settings are what `Step.draw` uses."""
        chat, drawing = divided(settings)
        step = Step(self.engine, self._prompt_ids(prompt, chat)[0], sampling=sampling_of(sampling, drawing))
        self._steps.add(step)
        return step

    def score(
        self,
        text: str | Tokens | Sequence[int],
        *,
        continuation: str | None = None,
        top_logprobs: int = 0,
    ) -> Score:
        """How likely the text is: the log-probability of each token given those before it. Costs one
        prefill, 32 rows at a time. continuation: only this is scored, behind the text `text`; top_logprobs:
        also the best tokens at each place. ParameterError: fewer than two tokens.

        model.score("The cat sat on the mat.").perplexity
        model.score("The capital of France is", continuation=" Paris").total_logprob
        """
        if continuation is None:
            tokens, start = (self.tokenize(text) if isinstance(text, str) else self._as_tokens(text)), 1
        elif isinstance(text, str):
            ids, start = continued(self.engine, text, continuation)
            tokens = self._tokens(text + continuation, ids)
        else:
            raise ParameterError("text", "must be a text where there is a continuation")
        scores = token_scores(self.engine, tokens.ids, top=top_logprobs)
        scores.logprobs[:start] = np.nan
        top = [
            [TokenLogprob(readable(raw := self.vocabulary.token_bytes(i)), raw, logprob) for i, logprob in at]
            for at in scores.top
        ]
        return Score(tokens, scores.logprobs, scores.ranks, top)

    def perplexity(self, text: str, *, window: int | None = None, stride: int | None = None) -> Perplexity:
        """The perplexity of a text of any length, and its bits per byte. window, stride: how it is cut, as
        for `engine.scoring.perplexity`. ParameterError.

        model.perplexity(open("file.txt", encoding="utf-8").read()).perplexity
        """
        for found in perplexity(self.engine, text, window=window, stride=stride):
            last = found
        return last

    def embed(
        self, texts: str | Sequence[str], *, pooling: Pooling = "mean", normalize: bool = True
    ) -> NDArray[np.float32]:
        """The texts as vectors, float32 [texts, hidden] (one text: [1, hidden]); arguments and errors as for
        `engine.embedding.embed`. ParameterError: an empty text.

        a, b = model.embed(["a cat", "a kitten"]); a @ b    # how alike they are, -1 … 1
        """
        listed = [texts] if isinstance(texts, str) else list(texts)
        if not all(isinstance(text, str) and text for text in listed):
            raise ParameterError("texts", "must be texts, none of them empty")
        encode = self.engine.tokenizer.encode
        rows = [embed(self.engine, encode(text), pooling=pooling, normalize=normalize) for text in listed]
        if not rows:
            raise ParameterError("texts", "must be texts, none of them empty")
        return np.stack(rows)

    def tokenize(self, text: str, *, bos: bool | None = None, control: bool = False) -> Tokens:
        """The tokens of a text: ids, bytes, pieces, places. bos, control: as for `Tokenizer.encode`.

        model.tokenize("Hello world").ids       # (19556, 905)
        """
        return self._tokens(text, self.engine.tokenizer.encode(text, bos=bos, control=control))

    def detokenize(self, ids: Iterable[int], *, show_control: bool = False) -> str:
        """The text of ids; bytes that are no UTF-8 become U+FFFD. ParameterError: no such id."""
        ids = list(ids)
        for token_id in ids:
            check_integer("token id", token_id, 0, self.vocabulary.num_tokens - 1)
        return self.engine.tokenizer.decode(ids, show_control=show_control)

    def __repr__(self) -> str:
        return (
            f"LanguageModel({self.name!r}, {self.vocabulary.num_tokens} tokens, window {self.context_length})"
        )

    def _request(
        self,
        prompt: Prompt,
        max_tokens: int | None,
        min_tokens: int,
        stop: str | Iterable[str] | None,
        ignore_eos: bool,
        use_cache: bool,
        sampling: Sampling | None,
        settings: Settings,
        truncate: Truncate | None = None,
        reserve: int | None = None,
    ) -> tuple[Request, int]:
        """The request, and how many tokens of its prompt did not fit."""
        chat, drawing = divided(settings)
        policy = Policy(truncate, self.context_length, reserve, max_tokens) if truncate else None
        if reserve is not None and policy is None:
            raise ParameterError("reserve", "needs truncate")
        prompt = listed(prompt)
        messages = self._messages(prompt)
        is_chat = bool(messages)
        if is_chat and policy:
            fitted = policy.fit_chat(
                self.engine.tokenizer, messages, lambda kept: self._chat_ids(kept, **chat)
            )
        else:
            ids, _ = self._prompt_ids(prompt, chat)
            fitted = policy.fit(ids, bos_id=self.vocabulary.bos_id) if policy else Fitted(ids)
        request = Request(
            prompt_ids=fitted.ids,
            sampling=sampling_of(sampling, drawing),
            max_tokens=max_tokens,
            min_tokens=min_tokens,
            ignore_eos=ignore_eos,
            stop=cast(tuple[str, ...], (stop,) if isinstance(stop, str) else stop),  # Request checks it
            continues_text=not is_chat,
            use_cache=use_cache,
        )
        return request, fitted.truncated_tokens

    def _read(self, request: Request) -> Generator[Piece]:
        pieces = self.engine.stream(request)
        try:
            while True:
                for step in self._steps:
                    step.close()  # a request would wait for its pages for ever; it computes them again
                piece = next(pieces, None)
                if piece is None:
                    return
                yield piece
        finally:
            pieces.close()

    def _prompt_ids(self, prompt: Prompt, chat: ChatSettings | None = None) -> tuple[list[int], bool]:
        """The ids of a prompt, and whether it is a chat, which is written by the settings `chat`."""
        prompt = listed(prompt)
        if messages := self._messages(prompt):
            return self._chat_ids(messages, **(chat or {})), True
        if chat:
            raise ParameterError(next(iter(chat)), "is for messages, and the prompt is none")
        if isinstance(prompt, str):
            return self.engine.tokenizer.encode(prompt), False
        if isinstance(prompt, Tokens):
            return list(prompt.ids), False
        items = prompt if isinstance(prompt, list) else []
        is_ids = all(isinstance(item, int | np.integer) and not isinstance(item, bool) for item in items)
        if is_ids and (items or prompt == []):
            return [int(item) for item in cast(list[int], items)], False
        raise ParameterError("prompt", "must be text, a list of messages, or a list of token ids")

    def _messages(self, prompt: Prompt) -> list[Message]:
        """The messages of a chat; none where the prompt is none."""
        is_chat = isinstance(prompt, list) and all(isinstance(item, Mapping) for item in prompt)
        return cast(list[Message], prompt) if is_chat else []

    def _chat_ids(self, messages: Sequence[Message], **chat: Unpack[ChatSettings]) -> list[int]:
        tools = chat.get("tools")
        return self.engine.tokenizer.encode_chat(
            messages,
            tools=None if tools is None else [schema_of(tool) if callable(tool) else tool for tool in tools],
            documents=chat.get("documents"),
            continue_final_message=chat.get("continue_final_message", False),
            variables=chat.get("template_args"),
        )

    def _as_tokens(self, ids: Tokens | Sequence[int]) -> Tokens:
        return (
            ids if isinstance(ids, Tokens) else self._tokens(self.detokenize(ids), self._prompt_ids(ids)[0])
        )

    def _tokens(self, text: str, ids: Sequence[int]) -> Tokens:
        vocabulary = self.vocabulary
        raw = [vocabulary.token_bytes(token_id) for token_id in ids]
        spans = places(text, raw)
        if None in spans:  # a token that is not in the text, such as BOS, before it
            is_control = [vocabulary.is_control(token_id) for token_id in ids]
            spans = places(text, [None if c else b for c, b in zip(is_control, raw, strict=True)])
        return Tokens(
            text, [Token(i, b, *(span or (None, None))) for i, b, span in zip(ids, raw, spans, strict=True)]
        )


def listed(prompt: Prompt) -> Prompt:
    """Messages and ids as a list, whatever they come in; texts and `Tokens` as they are."""
    is_items = isinstance(prompt, Iterable) and not isinstance(prompt, str | bytes | Tokens)
    return cast(Prompt, list(prompt)) if is_items else prompt
