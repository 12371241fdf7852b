"""Writes a `tokenizer.json` and its companions for a tiny model: byte-level BPE trained on a few lines."""

from __future__ import annotations

import json
from pathlib import Path

LINES = [
    "The capital of France is Paris.",
    "1 + 1 = 2",
    "用一句话介绍北京。",
    "He's here, and we are there.\n",
] * 4
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}"


def write_tokenizer(folder: Path, *, vocab_size: int = 300) -> Path:
    """A tokenizer cut as SmolLM2's, with 256 bytes, 3 special tokens and merges up to `vocab_size`."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    cuts = [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(cuts)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(LINES, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"bos_token": "<|im_start|>", "eos_token": {"content": "<|im_end|>"}, "add_bos_token": False}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [2, 0]}))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return folder
