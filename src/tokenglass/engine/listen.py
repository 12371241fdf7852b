"""From the pieces of an answer to trace events: a listener, with nothing to do where no one listens.

request = Request(prompt_ids=ids, trace_top=5)
for event in events(engine, request, engine.stream(request)): ...
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tokenglass.engine.loop import Engine
from tokenglass.engine.request import Piece, Request
from tokenglass.trace import TokenEvent


def events(engine: Engine, request: Request, pieces: Iterable[Piece]) -> Iterator[TokenEvent]:
    """One event for each token of `pieces`; `request` must have asked for reasons (`trace_top`)."""
    assert request.trace_top is not None, "a request without trace_top has no reasons to tell"
    before_s: float | None = None
    index = 0
    for piece in pieces:
        if piece.decision is None:  # a request that asked for no tokens
            continue
        since_s = piece.timings.submitted_s if before_s is None else before_s
        yield event_of(engine, request, piece, index=index, since_s=since_s)
        before_s = piece.at_s
        index += 1


def event_of(engine: Engine, request: Request, piece: Piece, *, index: int, since_s: float) -> TokenEvent:
    """The event of the `index`th token of an answer; `since_s`: when work on it began."""
    decision = piece.decision
    assert decision is not None, "this piece has no reasons to tell"
    token_bytes = engine.tokenizer.vocabulary.token_bytes
    position = len(request.prompt_ids) + index
    return TokenEvent(
        index,
        position,
        "decode" if index and request.use_cache else "prefill",
        token_bytes(decision.token_id),
        piece.text,
        piece.at_s - since_s,
        position * engine.model.kv_bytes_per_token,
        decision,
        piece.finish_reason,
        tuple([token_bytes(candidate.token_id) for candidate in decision.top]),
    )
