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
    num_prompt = len(request.prompt_ids)
    before_s: float | None = None
    index = 0
    for piece in pieces:
        if piece.decision is None:  # a request that asked for no tokens
            continue
        yield TokenEvent(
            index=index,
            position=num_prompt + index,
            phase="decode" if index else "prefill",
            token_bytes=engine.tokenizer.vocabulary.token_bytes(piece.decision.token_id),
            text=piece.text,
            step_s=piece.at_s - (piece.timings.submitted_s if before_s is None else before_s),
            kv_bytes=(num_prompt + index) * engine.model.kv_bytes_per_token,
            decision=piece.decision,
            finish_reason=piece.finish_reason,
        )
        before_s = piece.at_s
        index += 1
