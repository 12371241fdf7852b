"""`tokenglass doctor`: whether this machine can run a model, how, and what would make it better.

It looks and changes nothing. The facts are in `doctor_facts.py`, what they mean in `doctor_advice.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tokenglass.cli.columns import columns, left, size
from tokenglass.cli.doctor_advice import advice, problems
from tokenglass.cli.doctor_facts import gather
from tokenglass.cli.language import listed, t
from tokenglass.cli.output import write
from tokenglass.cli.parser import Parser, wrap_columns

LABEL_COLUMNS = 18


def main(arguments: list[str]) -> int:
    """Prints what was found. Status 1: something prevents a run."""
    options = doctor_parser().values(arguments)
    facts = gather()
    facts |= {"problems": problems(facts), "advice": advice(facts)}
    write((json.dumps(facts, ensure_ascii=False) if options["json"] else report(facts)) + "\n")
    return 1 if facts["problems"] else 0


def doctor_parser() -> Parser:
    """The parser behind `tokenglass doctor --help`."""
    parser = Parser("doctor", "Whether this machine can run a model, how, and what would make it better.")
    parser.add_argument("--json", action="store_true", help="one JSON object, for programs")
    return parser


def report(facts: dict[str, Any]) -> str:
    """The facts as lines; problems and advice at the end, where the eye is."""
    lines = []
    for label, value in rows(facts):
        first, *more = wrap_columns(value, columns() - LABEL_COLUMNS) or [""]
        lines.append(left(label, LABEL_COLUMNS) + first)
        lines += [" " * LABEL_COLUMNS + line for line in more]
    return "\n".join(lines)


def rows(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(what, value) of each line."""
    machine, kernels, store = facts["machine"], facts["kernels"], facts["store"]
    yield "tokenglass", f"{facts['version']}, Python {facts['python']}, {machine['system']}"
    yield t("processor"), machine["cpu"]
    yield t("cores"), cores(machine)
    yield t("threads"), threads(machine)
    yield t("instruction sets"), instruction_sets(kernels)
    yield t("memory"), memory(machine)
    if machine["huge_pages"]:
        yield t("huge pages"), machine["huge_pages"]
    yield t("C++ compiler"), facts["compiler"] or t("none")
    yield t("packages"), packages(facts["packages"])
    for extra, names in facts["extras"].items():
        yield f"[{extra}]", packages(names)
    yield t("store"), store["path"]
    yield (
        "",
        t("{used}, {free} free, ", used=size(store["num_bytes"]), free=size(store["free_bytes"]))
        + (t("can be written") if store["is_writable"] else t("cannot be written")),
    )
    is_here = store["default_path"] is not None
    here = t("{model}: is here" if is_here else "{model}: is not here", model=store["default_model"])
    yield t("default model"), here
    for name, value in facts["environment"].items():
        yield t("environment"), f"{name}={value}"
    for text in facts["problems"]:
        yield t("PROBLEM"), text
    for text in facts["advice"]:
        yield t("advice"), text
    yield "", t("it cannot run like this") if facts["problems"] else t("ready to run")


def cores(machine: dict[str, Any]) -> str:
    """`4 cores, 8 processors, quota 1.5`."""
    text = t("{cores} cores, {logical} processors", cores=machine["cores"], logical=machine["logical"])
    return text + ("" if machine["quota"] is None else t(", quota {n:g}", n=machine["quota"]))


def threads(machine: dict[str, Any]) -> str:
    """The default and its reason."""
    n = machine["num_threads"]
    if machine["quota"] is not None and machine["quota"] < machine["cores"]:
        return t("{n}: the whole processors of the quota", n=n)
    return t("{n}: one for each core", n=n)


def instruction_sets(kernels: dict[str, Any]) -> str:
    """The one that is used, and the others that can run."""
    others = [isa for isa in kernels["isas"] if isa != kernels["isa"]]
    text = kernels["isa"] or t("none")
    return text + (t("; others that can run: {names}", names=listed(others)) if others else "")


def memory(machine: dict[str, Any]) -> str:
    """Free, in all, and the control group's limit where there is one."""
    if machine["memory_bytes"] is None:
        return t("the system does not say")
    text = t("{free} free of {total}", free=size(machine["free_bytes"]), total=size(machine["memory_bytes"]))
    limit = machine["limit_bytes"]
    is_limited = limit is not None and limit < machine["memory_bytes"]
    return text + (t(", limit {limit}", limit=size(limit)) if is_limited else "")


def packages(versions: dict[str, str | None]) -> str:
    """`numpy 2.1, rich missing`; one word where none is there."""
    if not any(versions.values()):
        return t("not installed")
    return listed(f"{name} {version or t('missing')}" for name, version in versions.items())
