"""`tokenglass bench compare A B`: what changed between two results, and what is only noise."""

from __future__ import annotations

import json
from pathlib import Path

from tokenglass.bench.compare import compared, comparison_table, differences, read_record
from tokenglass.cli.language import t
from tokenglass.cli.output import say, write
from tokenglass.cli.parser import Parser
from tokenglass.errors import UsageError


def compare(arguments: list[str]) -> int:
    """Prints the comparison. UsageError: the results are of different machines or models (unless --force)."""
    options = compare_parser().values(arguments)
    before, after = (read_record(options[name]) for name in ("before", "after"))
    for difference in differences(before, after):
        if not options["force"]:
            raise UsageError(
                f"these results are not of one kind: {difference}",
                remedy="Add --force to compare them anyway",
            )
        say(t("not of one kind: {difference}", difference=difference))
    if options["json"]:
        write(json.dumps(compared(before, after)) + "\n")
        return 0
    words = {
        "before": t("before"),
        "after": t("after"),
        "ratio": t("ratio"),
        "verdict": t("verdict"),
        "within noise": t("within noise"),
        "better": t("better"),
        "worse": t("worse"),
    }
    commits = t("commits {before} and {after}", before=before["commit"], after=after["commit"])
    write(f"{comparison_table(before, after, words)}\n\n{commits}\n")
    return 0


def compare_parser() -> Parser:
    """The parser behind `tokenglass bench compare --help`."""
    parser = Parser("bench compare", "Two results of bench --json: what changed, and what is only noise.")
    add = parser.add_argument
    add("before", type=Path, metavar="A", help="the earlier result; of several lines the last")
    add("after", type=Path, metavar="B", help="the later one")
    add("--force", action="store_true", help="also when machine or model differ")
    add("--json", action="store_true", help="one JSON object, for programs")
    return parser
