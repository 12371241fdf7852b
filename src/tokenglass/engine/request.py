"""A request as it is asked, as it runs, and what comes out of it."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Seq
from dataclasses import dataclass, field
from operator import index
from typing import Literal

from tokenglass.engine.stop import StopStrings
from tokenglass.errors import ModelOutputError, ParameterError
from tokenglass.sampling import Choice, Draw, Sampling
from tokenglass.sampling.params import check_integer
from tokenglass.tokens import TextStream
from tokenglass.trace import Decision

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked: continue `prompt_ids`, at most `max_tokens` further (None: as far as the context window
    goes; 0: nothing is computed, the answer is empty and ended by `length`).

    Generation ends with reason `stop` at one of the model's end tokens (unless `ignore_eos`) or a `stop`
    string, which is not part of the text and may be the name of a control token; else with `length`. In the
    first `min_tokens` tokens end tokens are never chosen and stop strings are plain text. ParameterError: an
    empty prompt or stop string, ids that are no whole numbers, a negative max_tokens, a min_tokens above it.
    """

    prompt_ids: Seq[int]
    sampling: Sampling = field(default_factory=Sampling)
    max_tokens: int | None = None
    min_tokens: int = 0
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False
    continues_text: bool = False  # the answer goes on in the prompt's own text: its first space is kept
    use_cache: bool = True  # False: every step computes the whole text again, like a first loop in a book
    trace_top: int | None = None  # pieces say why, with this many candidates; None: nobody asks

    def __post_init__(self) -> None:
        try:  # copies: what the caller does with its own lists afterwards changes nothing here
            object.__setattr__(self, "prompt_ids", tuple(map(index, self.prompt_ids)))
        except TypeError:
            raise ParameterError("prompt_ids", "must be whole numbers, the ids of tokens") from None
        object.__setattr__(self, "stop", checked_stop(self.stop))
        if not self.prompt_ids:
            raise ParameterError(
                "prompt",
                "is empty",
                remedy="This model has no begin-of-text token to start from; give it a word",
            )
        if self.max_tokens is not None:
            check_integer("max_tokens", self.max_tokens, 0, 1 << 40)
        check_integer("min_tokens", self.min_tokens, 0, 1 << 40)
        if self.max_tokens is not None and self.min_tokens > self.max_tokens:
            raise ParameterError(
                "min_tokens", f"is {self.min_tokens}, more than the {self.max_tokens} of max_tokens"
            )
        if self.trace_top is not None:
            check_integer("trace_top", self.trace_top, 0, 1 << 20)


def checked_stop(stop: object) -> tuple[str, ...]:
    """A copy; None is no stop string. ParameterError: one that is empty or no string."""
    if stop is None:
        return ()
    texts = tuple(stop) if isinstance(stop, Iterable) and not isinstance(stop, str) else (None,)
    if not all(isinstance(text, str) for text in texts):
        raise ParameterError("stop", f"must hold strings, and is {stop!r}")
    if not all(texts):
        raise ParameterError("stop", "must not hold an empty string: it would end every answer at once")
    return texts


@dataclass
class Timings:
    """Counts and seconds of one request. Prefill ends when the first token is chosen; decode is every step
    after it.
    """

    prompt_tokens: int
    cached_tokens: int = 0  # of the prompt: what an earlier sequence had computed already
    output_tokens: int = 0
    forward_passes: int = 0
    submitted_s: float = 0.0  # on the clock of time.perf_counter
    first_token_s: float = 0.0
    finished_s: float = 0.0  # the newest token, and so at last the end

    @property
    def time_to_first_token_s(self) -> float:
        return self.first_token_s - self.submitted_s

    @property
    def decode_s(self) -> float:
        return self.finished_s - self.first_token_s

    @property
    def prefill_tokens_per_s(self) -> float:
        """Computed prompt tokens, those from the cache not counted, over the time to the first token."""
        return (self.prompt_tokens - self.cached_tokens) / max(self.time_to_first_token_s, 1e-9)

    @property
    def decode_tokens_per_s(self) -> float:
        """Tokens after the first, over the time after the first; 0 when there was only one."""
        return (self.output_tokens - 1) / max(self.decode_s, 1e-9) if self.output_tokens > 1 else 0.0

    @property
    def tokens_per_s(self) -> float:
        """Output tokens over the whole time from submission to the end."""
        return self.output_tokens / max(self.finished_s - self.submitted_s, 1e-9)


@dataclass(frozen=True)
class Piece:
    """What one step added to a request: text (whole characters, maybe none yet) and the ids it drew.

    timings: the request's counts so far, one record that all its pieces share; at_s: when the token was
    chosen, on the clock of time.perf_counter; decision: why it was, where the request asked for it.
    """

    text: str
    token_ids: tuple[int, ...] = ()
    finish_reason: FinishReason | None = None
    timings: Timings = field(default_factory=lambda: Timings(0), compare=False, repr=False)
    at_s: float = field(default=0.0, compare=False, repr=False)
    decision: Decision | None = field(default=None, compare=False, repr=False)


class Sequence:
    """A request as it runs. Invariant: positions [0, num_cached) of `ids` are cached, inside `pages`.

    reuse: a sequence that ended and kept its cache, to start from; is_kept: keep this one's cache in turn.
    """

    def __init__(
        self,
        request: Request,
        *,
        limit: int,
        end_ids: frozenset[int],
        decoder: TextStream,
        now_s: float,
        reuse: Sequence | None = None,
        is_kept: bool = False,
    ) -> None:
        self.request = request
        self.ids = list(request.prompt_ids)
        self.limit = limit  # ids may grow to this length
        self.end_ids = end_ids
        self.num_cached = 0
        self.pages: list[int] = []
        self.reuse = reuse
        self.is_kept = is_kept
        self.decoder = decoder
        self.stop = StopStrings(request.stop)
        self.finish_reason: FinishReason | None = None
        self.error: ModelOutputError | None = None  # nothing could be chosen: the reader gets it
        self.pieces: list[Piece] = []  # made by steps, not yet taken by the reader
        self.timings = Timings(prompt_tokens=len(self.ids), submitted_s=now_s)

    @property
    def output_ids(self) -> list[int]:
        return self.ids[len(self.request.prompt_ids) :]

    def draw(self) -> Draw:
        """How its next token is to be chosen."""
        request, num_prompt = self.request, len(self.request.prompt_ids)
        is_short = len(self.ids) - num_prompt < request.min_tokens
        banned = self.end_ids if is_short else frozenset()
        return Draw(request.sampling, self.ids, num_prompt, request.trace_top, banned)

    def take_over(self, ended: Sequence) -> None:
        """Takes the pages of a sequence that ended, and of its cache what both texts begin with.

        The prompt's last token is computed in any case: its logits choose the answer's first.
        """
        shared = common_length(ended.ids[: ended.num_cached], self.ids)
        self.num_cached = self.timings.cached_tokens = min(shared, len(self.ids) - 1)
        self.pages, ended.pages, ended.num_cached = ended.pages, [], 0

    def append(self, choice: Choice, *, now_s: float) -> None:
        """Takes the chosen token: grows the text, or ends the sequence. What was held back for a stop string
        that cannot come any more is then released.
        """
        timings, token_id = self.timings, choice.token_id
        if timings.output_tokens == 0:
            timings.first_token_s = now_s
        timings.finished_s = now_s
        timings.output_tokens += 1
        self.ids.append(token_id)
        is_end = token_id in self.end_ids
        is_last = is_end or len(self.ids) >= self.limit
        text = "" if is_end else self.decoder.push(token_id)
        if is_last:
            text += self.decoder.finish()
        shown, is_stopped = (
            self.stop.push(text) if timings.output_tokens > self.request.min_tokens else (text, False)
        )
        if is_last and not is_stopped:
            shown += self.stop.flush()
        if is_stopped or is_last:
            self.finish_reason = "stop" if is_stopped or is_end else "length"
        self.pieces.append(Piece(shown, (token_id,), self.finish_reason, timings, now_s, choice.decision))

    def end_empty(self, now_s: float) -> None:
        """Ends a request that asked for no tokens."""
        self.finish_reason = "length"
        self.timings.first_token_s = self.timings.finished_s = now_s
        self.pieces.append(Piece("", (), "length", self.timings, now_s))


def common_length(a: Seq[int], b: Seq[int]) -> int:
    """How many ids both begin with."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
