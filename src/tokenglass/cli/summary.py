"""What `tokenglass run` says at the end: one line for people, or the same and more as one JSON object.

Rates as everywhere in this project: prefill = prompt tokens over the time to the first token; decode = the
tokens after the first over the time after it; overall = all output tokens over all the time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tokenglass.bench.machine import peak_memory_bytes, read_bytes_per_s
from tokenglass.cli.language import t
from tokenglass.engine import Engine, Piece, Request, Timings


@dataclass(frozen=True)
class Answer:
    """A finished (or interrupted) answer with its measurements."""

    text: str
    token_ids: list[int]
    finish_reason: str
    timings: Timings
    weight_bytes: int  # that one decoded token reads; 0 where Transformers holds them
    read_bytes_per_s: float | None  # what memory allows; None when nothing was decoded to compare it with
    memory_bytes: int | None

    @classmethod
    def of(cls, engine: Engine, request: Request, pieces: Sequence[Piece]) -> Answer:
        """Gathers the pieces, then measures how fast memory delivers the weights."""
        timings = pieces[-1].timings if pieces else Timings(len(request.prompt_ids))
        memory_bytes = peak_memory_bytes()
        weight_bytes = sum(product.num_bytes for product in engine.model.products)
        limit = None  # nothing was decoded to hold against it, or the weights are not ours to read
        if weight_bytes and timings.output_tokens > 1:
            limit = read_bytes_per_s(weight_bytes, engine.model.read_weights)
        return cls(
            text="".join(piece.text for piece in pieces),
            token_ids=[token for piece in pieces for token in piece.token_ids],
            finish_reason=(pieces[-1].finish_reason if pieces else None) or "interrupted",
            timings=timings,
            weight_bytes=weight_bytes,
            read_bytes_per_s=limit,
            memory_bytes=memory_bytes,
        )

    @property
    def sha256(self) -> str:
        """The first 12 hexadecimal digits of the text's SHA-256: equal answers have equal hashes."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:12]

    @property
    def bytes_per_s(self) -> float:
        """Weights read while decoding."""
        return self.weight_bytes * self.timings.decode_tokens_per_s

    def line(self) -> str:
        """`23 prompt + 64 output tokens (length) in 64 passes | first token 31 ms | prefill 742, …`"""
        timings = self.timings
        rates = t("nothing decoded")
        if self.token_ids:
            rates = t(
                "first token {ms:.0f} ms | prefill {prefill:.0f}, decode {decode}, overall {s:.0f} tokens/s",
                ms=timings.time_to_first_token_s * 1e3,
                prefill=timings.prefill_tokens_per_s,
                decode=f"{timings.decode_tokens_per_s:.0f}" if len(self.token_ids) > 1 else "-",
                s=timings.tokens_per_s,
            )
        counts = t(
            "{prompt} prompt + {output} output tokens ({reason}) in {passes} passes",
            prompt=timings.prompt_tokens,
            output=timings.output_tokens,
            reason=t(self.finish_reason),
            passes=timings.forward_passes,
        )
        parts = [counts, rates]
        if self.read_bytes_per_s:
            parts.append(
                t(
                    "{rate:.1f} GB/s, {share:.0%} of this machine's {limit:.1f}",
                    rate=self.bytes_per_s / 1e9,
                    share=self.bytes_per_s / self.read_bytes_per_s,
                    limit=self.read_bytes_per_s / 1e9,
                )
            )
        if self.memory_bytes:
            parts.append(f"{self.memory_bytes / 1e6:.0f} MB")
        return " | ".join([*parts, f"sha256 {self.sha256}"])

    def record(self, settings: dict[str, Any]) -> dict[str, Any]:
        """The object that --json prints. Names as in OpenAI's API where it has one; null: not measured."""
        timings = self.timings
        limit = self.read_bytes_per_s
        return {
            "text": self.text,
            "token_ids": self.token_ids,
            "finish_reason": self.finish_reason,
            "usage": {
                "prompt_tokens": timings.prompt_tokens,
                "completion_tokens": timings.output_tokens,
                "total_tokens": timings.prompt_tokens + timings.output_tokens,
            },
            "timings": {
                "forward_passes": timings.forward_passes,
                "time_to_first_token_s": timings.time_to_first_token_s,
                "decode_s": timings.decode_s,
                "prefill_tokens_per_s": timings.prefill_tokens_per_s if self.token_ids else None,
                "decode_tokens_per_s": timings.decode_tokens_per_s if timings.output_tokens > 1 else None,
                "tokens_per_s": timings.tokens_per_s if self.token_ids else None,
                "weight_bytes_per_token": self.weight_bytes or None,
                "bytes_per_s": self.bytes_per_s if limit else None,
                "limit_bytes_per_s": limit,
                "memory_bytes": self.memory_bytes,
            },
            "settings": settings,
            "sha256": self.sha256,
        }
