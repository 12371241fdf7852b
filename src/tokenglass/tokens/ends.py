"""Which tokens end an answer: those that a model's files name, and those that end a turn by their name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

END_NAMES = frozenset((
    "</s>", "<eos>", "<|endoftext|>", "<|end_of_text|>", "<｜end▁of▁sentence｜>", "<|im_end|>", "<|eot_id|>",
    "<|eom_id|>", "<|end|>", "<end_of_turn>", "<end_of_utterance>", "<EOT>", "_<EOT>", "[EOT]", "<|return|>",
))  # fmt: skip  # tokens that end a turn by their name, as in llama.cpp


def ends_of(
    named: Iterable[int | None], control: Mapping[str, int], num_tokens: int
) -> tuple[frozenset[int], tuple[str, ...]]:
    """The ids that end an answer, and a note for each named one that lies outside the vocabulary.

    Such an id is never drawn, so a model that has no other runs all the same: the Chinese GPT-2 has 21,128
    tokens and GPT-2's end, 50256. `named`: what the files say; `control`: text -> id of control tokens.
    """
    wanted = {i for i in named if i is not None}
    inside = {i for i in wanted if 0 <= i < num_tokens}
    problem = f"is not in the vocabulary of {num_tokens} tokens: it is ignored"
    notes = tuple(f"the end token {i} {problem}" for i in sorted(wanted - inside))
    return frozenset(inside | {control[text] for text in END_NAMES & control.keys()}), notes
