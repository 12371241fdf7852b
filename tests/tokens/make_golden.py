"""Writes golden_smollm2.json: for each line of `corpus.py` a hash of its ids, by the reference.

The reference is Transformers on the GGUF file, with the pre-tokenizer of the model's own tokenizer.json put
in: Transformers does not know the name "smollm" and would use GPT-2's (`test_reference.py` shows where).

    python -m tests.tokens.make_golden MODEL.gguf        (extra: oracle; takes about ten seconds)
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from zlib import crc32

from tests.tokens.corpus import lines

GOLDEN = Path(__file__).with_name("golden_smollm2.json")


def reference(path: Path, *, original_cuts: bool = True) -> Any:
    """Transformers' tokenizer for the file; with `original_cuts` as the model's tokenizer.json has it."""
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(path.parent), gguf_file=path.name)
    if original_cuts:
        steps = [Digits(individual_digits=True), ByteLevel(add_prefix_space=False, use_regex=True)]
        tokenizer.backend_tokenizer.pre_tokenizer = Sequence(steps)
    return tokenizer


def ids_hash(ids: list[int]) -> str:
    return f"{crc32(json.dumps(ids).encode()):08x}"


def main(path: Path) -> None:
    tokenizer = reference(path)

    def hashes(**options: bool) -> str:
        return " ".join(
            ids_hash(tokenizer(line, add_special_tokens=False, **options).input_ids) for line in lines()
        )

    golden = {
        "corpus": f"{crc32(json.dumps(lines()).encode()):08x}",
        "plain": hashes(split_special_tokens=True),
        "control": hashes(),
    }
    GOLDEN.write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
