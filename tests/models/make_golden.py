"""Writes golden.npz: what Transformers computes in float32 from the dequantised default model.

    python -m tests.models.make_golden MODEL.gguf

Logits of 300 positions at 64 fixed ids, each row's largest magnitude and best id, and 200 greedy tokens of
each prompt. Needs torch and transformers (extra: oracle); `test_llama_golden.py` needs only the file written.
"""

from __future__ import annotations

import sys
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.models.prompts import GREEDY_PROMPTS, LONG_TEXT

GOLDEN = Path(__file__).parent / "golden.npz"
NUM_POSITIONS, NUM_GREEDY = 300, 200
SAMPLED_IDS = np.arange(0, 49152, 768)  # 64 ids over the whole vocabulary


class Reference:
    """Transformers' model and tokenizer for a GGUF file."""

    def __init__(self, path: Path) -> None:
        import torch
        from transformers import AutoModelForCausalLM

        self.file = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
        model: Any = AutoModelForCausalLM.from_pretrained(**self.file, dtype=torch.float32)
        self.model = model.eval()

    @cached_property
    def tokenizer(self) -> Any:
        """Made when it is asked for: it takes as long as the model."""
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(**self.file)

    def encode(self, text: str) -> list[int]:
        """Token ids without special tokens."""
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    def logits(self, ids: list[int]) -> NDArray[np.float32]:
        """float32 [len(ids), vocab]."""
        import torch

        with torch.no_grad():
            scores: NDArray[np.float32] = self.model(torch.tensor([ids])).logits[0].numpy()
        return scores

    def greedy(self, ids: list[int], num_tokens: int) -> list[int]:
        """The next `num_tokens` ids, end tokens included: the best id each time."""
        import torch

        cache, new, out = None, ids, []
        with torch.no_grad():
            for _ in range(num_tokens):
                result = self.model(torch.tensor([new]), past_key_values=cache, use_cache=True)
                cache, new = result.past_key_values, [int(result.logits[0, -1].argmax())]
                out += new
        return out


def main() -> None:
    reference = Reference(Path(sys.argv[1]))
    ids = reference.encode(LONG_TEXT)[:NUM_POSITIONS]
    assert len(ids) == NUM_POSITIONS
    logits = reference.logits(ids)
    np.savez_compressed(
        GOLDEN,
        ids=np.array(ids, np.int32),
        logits=logits[:, SAMPLED_IDS],
        largest=np.abs(logits).max(axis=1),
        best=logits.argmax(axis=1).astype(np.int32),
        greedy=np.array(
            [reference.greedy(reference.encode(p), NUM_GREEDY) for p in GREEDY_PROMPTS], np.int32
        ),
    )


if __name__ == "__main__":
    main()
