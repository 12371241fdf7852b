"""From a path to an engine whose scores come from Transformers; everything around the model is as ever.

The tokenizer is our own wherever we can read the files; what cannot be read goes through Transformers
(`tokens/transformers_tokenizer.py`), and a note says so.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from tokenglass import kernels
from tokenglass.cache import PagePool
from tokenglass.cache.pages import pages_for
from tokenglass.engine.loop import Engine
from tokenglass.engine.scheduler import Scheduler
from tokenglass.models.transformers import TransformersModel
from tokenglass.models.transformers_files import DType, open_transformers
from tokenglass.sampling.params import check_integer
from tokenglass.tokens import Tokenizer

NO_WINDOW = 1 << 20  # positions, where a model names no end (Mamba, ALiBi)
MAX_RUNNING = 32


def load_transformers(
    path: Path,
    *,
    cpu: kernels.Cpu,
    context_length: int | None = None,
    device: str = "cpu",
    dtype: DType | None = None,
    trust_remote_code: bool = False,
) -> Engine:
    """An engine for any causal model. Errors as for `open_transformers` and for its tokenizer.

    A prompt runs in one pass, as in `model.generate`: a recurrent state cannot take it in pieces.
    """
    model = open_transformers(
        path, cpu=cpu, device=device, dtype=dtype, trust_remote_code=trust_remote_code
    )
    tokenizer = Tokenizer.from_path(path, vocab_size=model.vocab)
    tokenizer.vocabulary = replace(tokenizer.vocabulary, end_ids=tokenizer.vocabulary.end_ids | model.end_ids)
    window = model.context_length or NO_WINDOW
    if context_length is not None:
        check_integer("context_length", context_length, 2, window)
        window = context_length
    scheduler = Scheduler(
        PagePool(pages_for(window), model.drop),
        tokenizer.vocabulary,
        context_length=window,
        max_rows=window,
        max_running=MAX_RUNNING,
    )
    return Engine(model, scheduler, tokenizer)
