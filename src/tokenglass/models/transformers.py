"""Any causal model that Hugging Face's Transformers runs, behind the same `forward` as our own.

Transformers gives the scores and nothing else: who runs, the choice, stops and text are ours. A text has a
cache of Transformers' kind. Its name is the first of its pages, which nobody else holds meanwhile, and the
start of a slice says how far it still counts:

    the slice starts        the cache
    where the text ended    goes on
    earlier                 is cut to there where it keeps every position; else it is computed again
    at 0                    is new: `--no-cache`, or another text on this page

A recurrent state (Mamba) and a sliding window that has moved on cannot go back. Then the whole text runs
again in one pass, which takes time and changes nothing else. Files: `transformers_files.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokenglass import kernels
from tokenglass.errors import TokenglassError
from tokenglass.models.batch import Batch, Slice

_WINDOW_NAMES = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length")
_NO_CACHE = ("bamba",)  # its single steps differ from the whole text: every pass computes all of it
_CACHE_NAMES = ("cache", "past_key_values", "cache_params", "state")  # RWKV; others in code of models


@dataclass
class Text:
    """What one sequence has run so far. `cache` holds exactly `ids`; None: to be computed again."""

    ids: list[int] = field(default_factory=list)
    cache: Any = None


class TransformersModel:
    """A causal model of Transformers. Each slice is a pass of its own, so texts do not know each other."""

    def __init__(self, model: Any, *, cpu: kernels.Cpu, notes: Iterable[str] = ()) -> None:
        self.model = model
        self.cpu = cpu  # threads of the sampler
        self.notes = list(notes)
        self.products: list[kernels.Linear] = []  # its weights are not ours to time
        self._texts: dict[int, Text] = {}
        accepted = inspect.signature(model.forward).parameters
        self._cache_name = next((name for name in _CACHE_NAMES if name in accepted), None)
        if model.config.model_type in _NO_CACHE:
            self._cache_name = None
        self._can_skip_scores = "logits_to_keep" in accepted
        # Phi-3 turns positions otherwise once a text is longer than this: its cache serves one side only
        self._short_length = getattr(model.config, "original_max_position_embeddings", None) or 1 << 62
        self._torch: Any = import_module("torch")
        with self._torch.inference_mode():
            (one, cache), (other, _) = self._run([0, 1], None, 2), self._run([0, 2], None, 2)
            self._run([1], cache, 1)  # what a first pass loads or says comes now
        self.vocab = one.shape[1]
        self.is_causal = not np.abs(one[0] - other[0]).max() > 0.05 * np.abs(one[0]).max()

    def forward(self, batch: Batch) -> kernels.Logits:
        """Logits of the rows that want them, [outputs, vocab], in float32 on the CPU.

        TokenglassError: the device has no memory left.
        """
        try:
            with self._torch.inference_mode():
                scores = np.concatenate([self._scores(piece) for piece in batch.slices])
        except self._torch.OutOfMemoryError:
            raise TokenglassError(
                f"{self.model.device} has not enough memory for this text",
                remedy="Take a shorter one, a smaller model, or --dtype bf16",
            ) from None
        rows = kernels.Rows(max(1, len(scores)), self.vocab)
        rows.fill(scores)
        return kernels.Logits(self.cpu, rows, self.vocab)

    def drop(self, pages: Iterable[int]) -> None:
        """Forgets the texts of these pages."""
        for page in pages:
            self._texts.pop(page, None)

    @property
    def context_length(self) -> int | None:
        """Positions that the model was made for; None: its configuration names no end."""
        config = self.model.config.get_text_config(decoder=True)
        named = (getattr(config, name, None) for name in _WINDOW_NAMES)
        return next((length for length in named if isinstance(length, int) and length > 1), None)

    @property
    def end_ids(self) -> list[int]:
        """The ids at which `model.generate` ends."""
        ends = getattr(self.model.generation_config, "eos_token_id", None)
        return ends if isinstance(ends, list) else [] if ends is None else [ends]

    def read_weights(self) -> None:
        """Does nothing: there is no memory of ours to time."""

    @property
    def kv_bytes_per_token(self) -> int:
        """Keys and values of the longest text, over its positions; 0 where there are none."""
        text = max(self._texts.values(), key=lambda text: len(text.ids), default=Text())
        tensors = [
            tensor
            for layer in getattr(text.cache, "layers", ())
            for tensor in (getattr(layer, "keys", None), getattr(layer, "values", None))
            if tensor is not None
        ]
        num_bytes: int = sum(tensor.nbytes for tensor in tensors)
        return num_bytes // max(1, len(text.ids))

    def _scores(self, piece: Slice) -> NDArray[np.float32]:
        text = self._texts.setdefault(piece.pages[0], Text())
        assert len(text.ids) >= piece.start, "the scheduler says what is cached"
        ids, new_ids = [*text.ids[: piece.start], *piece.ids], list(piece.ids)
        cache = None
        if (len(ids) > self._short_length) == (len(text.ids) > self._short_length):
            cache = continued(text.cache, len(text.ids), piece.start, len(new_ids))
        text.ids, text.cache = ids, None  # a pass that is interrupted leaves half a cache
        scores, text.cache = self._run(ids if cache is None else new_ids, cache, piece.num_outputs)
        return scores

    def _run(self, new_ids: list[int], cache: Any, num_outputs: int) -> tuple[NDArray[np.float32], Any]:
        """One pass over `new_ids` behind what is in `cache`: scores of the last rows, and the cache of all.

        No attention mask: nothing is padded, and Mamba takes one of the whole text for many rows.
        """
        torch, device = self._torch, self.model.device
        inputs: dict[str, Any] = {"input_ids": torch.tensor([new_ids], device=device)}
        if self._cache_name:
            inputs |= {self._cache_name: cache, "use_cache": True}
        if self._can_skip_scores:
            inputs["logits_to_keep"] = max(1, num_outputs)
        result = self.model(**inputs, return_dict=True)
        logits = result.logits[0]
        scores: NDArray[np.float32] = logits[len(logits) - num_outputs :].float().cpu().numpy()
        return scores, getattr(result, self._cache_name, None) if self._cache_name else None


def continued(cache: Any, num_held: int, start: int, num_new: int) -> Any:
    """`cache`, which holds `num_held` positions, cut to the first `start`; None: it cannot serve them.

    What is not known to keep every position by itself goes on by single tokens only: a recurrent state that
    takes several at once may begin again from nothing (Mamba's does).
    """
    if cache is None or start == 0:
        return None
    known = import_module("transformers.cache_utils")
    layers = getattr(cache, "layers", None) or [None]
    if not all(type(layer) in (known.DynamicLayer, known.DynamicSlidingWindowLayer) for layer in layers):
        return cache if num_held == start and num_new == 1 else None
    if start < num_held:
        try:
            cache.crop(start - num_held)  # negative: so many from the end
        except (RuntimeError, ValueError, AttributeError):  # the window has moved on
            return None
    return cache
