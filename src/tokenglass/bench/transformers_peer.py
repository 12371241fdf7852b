"""Transformers on the same GGUF, dequantised by itself into bf16 or f32; greedy, with its own cache.

It loads slowly (some 25 s), so it is measured only when it is named. Runs in the child process of `peers.py`.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

HOW = "from_pretrained(gguf_file=…, dequantised), dynamic cache, last logits only, greedy, no text made"

Answer = tuple[float, float, list[int]]


class Peer:
    """One model in one dtype."""

    def __init__(self, path: str, num_threads: int, _: int, variant: str) -> None:
        # progress bars and hints would stand between our own lines
        os.environ |= {"TQDM_DISABLE": "1", "TRANSFORMERS_VERBOSITY": "error"}
        warnings.simplefilter("ignore")
        import torch
        import transformers

        torch.set_num_threads(num_threads)
        folder, name = Path(path).parent, Path(path).name
        dtype = torch.bfloat16 if variant == "bf16" else torch.float32
        self.torch = torch
        # newer versions would keep the weights packed, and compute in float32 whatever the dtype
        config = getattr(transformers, "GgufConfig", None)
        packed = {"quantization_config": config(dequantize=True)} if config else {}
        self.model: Any = transformers.AutoModelForCausalLM.from_pretrained(
            folder, gguf_file=name, dtype=dtype, **packed
        )
        self.kept: dict[int, Any] = {}  # caches by the length of their prompt

    def generate(self, prompts: list[list[int]], num_tokens: int, keep: bool) -> Answer:
        """All prompts have one length, as a batch needs it."""
        torch, length = self.torch, len(prompts[0])
        with torch.inference_mode():
            ids = torch.tensor(prompts)
            cache = self.kept.get(length) if keep else None
            if cache is not None and length > 1:
                cache.crop(length - 1 - cache.get_seq_length())  # negative: so many from the end
                ids = ids[:, -1:]
            else:
                cache = None
            started_s = first_s = perf_counter()
            answer: list[int] = []
            for _ in range(num_tokens):
                out = self.model(ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
                cache, ids = out.past_key_values, out.logits[:, -1].argmax(-1, keepdim=True)
                answer.append(int(ids[0, 0]))
                if len(answer) == 1:
                    first_s = perf_counter()
            if keep:
                self.kept[length] = cache
        return first_s - started_s, perf_counter() - first_s, answer
