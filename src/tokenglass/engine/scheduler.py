"""Who runs in the next step. Sequences wait in order, get all the pages they may need, and keep them until
they end; a conversation's keeps its cache after that, as long as nobody else needs the room.

A step has at most `max_rows` rows: one for each sequence that is decoding, the rest for prompts, in pieces.
Rows do not know their neighbours (docs/en/numerics.md), so none of this changes any answer.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass

from tokenglass.cache import PAGE_TOKENS, PagePool
from tokenglass.cache.pages import pages_for
from tokenglass.engine.request import Request, Sequence
from tokenglass.errors import ContextFullError, ParameterError, TokenglassError
from tokenglass.models.batch import Batch, Slice
from tokenglass.sampling import Choice, Draw
from tokenglass.tokens import TextStream, Vocabulary


@dataclass(frozen=True)
class Step:
    """One step: what the model computes, and for each row of its logits who draws how."""

    batch: Batch
    sequences: tuple[Sequence, ...]  # one for each slice of the batch
    draws: tuple[Draw, ...]  # one for each row of logits


class Scheduler:
    """Fills steps from waiting and running sequences, and takes back what they chose."""

    def __init__(
        self, pool: PagePool, vocabulary: Vocabulary, *, context_length: int, max_rows: int, max_running: int
    ) -> None:
        self.pool = pool
        self.vocabulary = vocabulary
        self.context_length = min(context_length, pool.num_pages * PAGE_TOKENS)
        self.max_rows = max_rows
        self.max_running = min(max_running, max_rows)
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        self.kept: list[Sequence] = []  # ended, with their cache; the oldest goes first when room is needed

    def check(self, request: Request) -> None:
        """ContextFullError: no room for even one token of answer; ParameterError: an id that is no token."""
        num_prompt = len(request.prompt_ids)
        if num_prompt >= self.context_length:
            raise ContextFullError(num_prompt, self.context_length)
        num_tokens = self.vocabulary.num_tokens
        for name, ids in (("prompt_ids", request.prompt_ids), ("logit_bias", request.sampling.logit_bias)):
            if not all(0 <= token < num_tokens for token in ids):
                raise ParameterError(name, f"must name tokens from 0 to {num_tokens - 1}")

    def submit(self, request: Request, *, reuse: Sequence | None = None, keep: bool = False) -> Sequence:
        """Queues a request. Errors as for `check`.

        keep: when it ends its cache stays, for one later request that names the sequence as `reuse`. That
        changes no answer, only what has to be computed; `forget` gives the pages back.
        """
        self.check(request)
        num_prompt = len(request.prompt_ids)
        room = self.context_length - num_prompt
        limit = num_prompt + (room if request.max_tokens is None else min(room, request.max_tokens))
        before = request.prompt_ids[-1] if request.continues_text else None
        sequence = Sequence(
            request,
            limit=limit,
            end_ids=self._ends(request),
            decoder=TextStream(self.vocabulary, after=before),
            now_s=time.perf_counter(),
            reuse=reuse,
            is_kept=keep,
        )
        if limit == num_prompt:
            sequence.end_empty(time.perf_counter())
        else:
            self.waiting.append(sequence)
        return sequence

    def next(self) -> Step:
        """The next step: every decoding sequence's newest token, then prompts while rows are left.

        TokenglassError: only pages that were reserved would let a request run.
        """
        self._admit()
        if self.waiting and not self.running:  # no step of ours would ever free a page
            raise pages_are_held()
        rows_left = self.max_rows
        slices: list[Slice] = []
        sequences: list[Sequence] = []
        draws: list[Draw] = []
        for sequence in sorted(self.running, key=lambda s: len(s.ids) - s.num_cached > 1):
            if not rows_left:
                break
            # The last id always runs: a step that was interrupted while it was booked may have cached it.
            start = min(sequence.num_cached, len(sequence.ids) - 1)
            new_ids = sequence.ids[start : start + rows_left]
            rows_left -= len(new_ids)
            end = start + len(new_ids)
            is_complete = end == len(sequence.ids)
            slices.append(Slice(new_ids, start, sequence.pages[: pages_for(end)], int(is_complete)))
            sequences.append(sequence)
            if is_complete:
                draws.append(sequence.draw())
        return Step(Batch(tuple(slices)), tuple(sequences), tuple(draws))

    def commit(self, step: Step, choices: list[Choice]) -> list[Sequence]:
        """Books a step: what is cached now, each choice on its sequence. Returns who grew or failed."""
        now_s = time.perf_counter()
        left = iter(choices)
        grown: list[Sequence] = []
        for sequence, piece in zip(step.sequences, step.batch.slices, strict=True):
            sequence.timings.forward_passes += 1
            sequence.num_cached = piece.start + len(piece.ids)
            if not piece.num_outputs:
                continue
            if not sequence.request.use_cache:
                sequence.num_cached = 0  # the next step starts over
            choice = next(left)
            if choice.error:
                sequence.error = choice.error
                self.drop(sequence)
                grown.append(sequence)
                continue
            sequence.append(choice, now_s=now_s)
            grown.append(sequence)
            if sequence.finish_reason:
                self.drop(sequence)
        return grown

    def drop(self, sequence: Sequence) -> None:
        """Ends a sequence, finished or not; its pages go back, but for those that hold what it shall keep."""
        if sequence in self.waiting:
            self.waiting.remove(sequence)
        if sequence in self.running:
            self.running.remove(sequence)
            num_kept = pages_for(sequence.num_cached) if sequence.is_kept else 0
            self.pool.give_back(sequence.pages[num_kept:])
            del sequence.pages[num_kept:]
            if num_kept:
                self.kept.append(sequence)

    def forget(self, sequence: Sequence) -> None:
        """Gives back what an ended sequence kept."""
        if sequence in self.kept:
            self.kept.remove(sequence)
            self.pool.give_back(sequence.pages)
            sequence.pages, sequence.num_cached = [], 0

    def make_room(self, num_pages: int, *, but: Sequence | None = None) -> bool:
        """Whether `num_pages` are free, once kept caches (the oldest first, `but` never) had to go for it."""
        while num_pages > self.pool.num_free and (others := [kept for kept in self.kept if kept is not but]):
            self.forget(others[0])
        return num_pages <= self.pool.num_free

    def reserve(self, num_pages: int) -> list[int]:
        """Pages for work outside the queue, to be given back to `pool`. TokenglassError: others hold them."""
        if not self.make_room(num_pages):
            raise pages_are_held()
        return self.pool.take(num_pages)

    def _ends(self, request: Request) -> frozenset[int]:
        """The tokens that end it: the model's own, and control tokens whose name is a stop string."""
        control = self.vocabulary.control
        named = {control[text] for text in request.stop if text in control}
        return frozenset(named if request.ignore_eos else named | self.vocabulary.end_ids)

    def _admit(self) -> None:
        while self.waiting and len(self.running) < self.max_running:
            sequence = self.waiting[0]
            ended = sequence.reuse if sequence.reuse in self.kept else None
            need = max(0, pages_for(sequence.limit) - (len(ended.pages) if ended else 0))
            if not self.make_room(need, but=ended):
                return
            self.waiting.popleft()
            if ended:
                self.kept.remove(ended)
                sequence.take_over(ended)
            sequence.reuse = None
            sequence.pages += self.pool.take(need)
            self.running.append(sequence)


def pages_are_held() -> TokenglassError:
    return TokenglassError(
        "other requests hold the cache's pages", remedy="Wait for them to end, or close a stepper"
    )
