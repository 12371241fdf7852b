"""`tokenglass presets`: sampling settings for four kinds of text, and why these numbers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from tokenglass.cli.language import t
from tokenglass.cli.output import write
from tokenglass.cli.parser import Parser, wrap_columns

REMEDY = "run --preset NAME takes one; an option given beside it wins: --preset chat --temperature 0.5"


@dataclass(frozen=True)
class Preset:
    """What a preset sets; everything else stays off."""

    temperature: float
    top_p: float
    why: str


PRESETS = {
    "code": Preset(
        0.2,
        0.95,
        "Most places in a program have one right token, and one wrong token breaks all of it. From 0.1 to "
        "0.3 the best token nearly always wins: at 0.2 a token with half the best one's probability is "
        "drawn 1/32 as often. Not quite 0, so that another seed gives another attempt, and loops can be "
        "left.",
    ),
    "maths": Preset(
        0.1,
        1.0,
        "A step of a calculation is right or wrong, so the lowest setting that still varies, 0.1 of the "
        "range 0.1 to 0.3: half the probability is drawn 1/1024 as often. Nothing needs to be cut off, as "
        "the tail has no weight left. Several answers with different seeds can vote (-n 5).",
    ),
    "chat": Preset(
        0.7,
        0.95,
        "Many sentences answer a question well. About 0.7 the wording varies and the facts mostly stay; "
        "top-p 0.95 removes the long tail, where thousands of unlikely tokens together are likely enough "
        "to spoil a sentence.",
    ),
    "creative": Preset(
        0.9,
        0.9,
        "A story should not be the most likely one. From 0.7 to 1.0 the model's own variety comes out "
        "(1.0 is what it learnt); more variety gives the tail more weight, so top-p is needed, and "
        "tighter than in chat: 0.9.",
    ),
}


def main(arguments: list[str]) -> int:
    """Prints every preset with its numbers and reasons."""
    parser = Parser("presets", "Sampling settings for four kinds of text, and why.", epilog=REMEDY)
    parser.add_argument("--json", action="store_true", help="one JSON object: numbers and reasons by name")
    if parser.values(arguments)["json"]:
        record = {name: {**asdict(preset), "why": t(preset.why)} for name, preset in PRESETS.items()}
        write(json.dumps(record, ensure_ascii=False) + "\n")
        return 0
    for name, preset in PRESETS.items():
        write(f"{name:10}--temperature {preset.temperature:g} --top-p {preset.top_p:g}\n")
        write("".join(f"    {line}\n" for line in wrap_columns(t(preset.why), 74)) + "\n")
    write("\n".join(wrap_columns(t(REMEDY), 78)) + "\n")
    return 0
