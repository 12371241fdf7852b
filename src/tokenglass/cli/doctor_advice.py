"""What the facts of `doctor_facts.py` mean: what prevents a run, and what would make one better."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from tokenglass.cli.doctor_facts import OURS
from tokenglass.cli.language import listed, t

ROOM_BYTES = 250_000_000  # what a run of the default model takes, in memory or on the disk
HUGE_PAGE_SETTING = "/sys/kernel/mm/transparent_hugepage/enabled"


def problems(facts: dict[str, Any]) -> list[str]:
    """What prevents a run with the default model; nothing: it works."""
    found = []
    if facts["kernels"]["error"]:
        found.append(facts["kernels"]["error"])
    missing = [name for name, version in facts["packages"].items() if version is None and name != "pip"]
    if missing:
        found.append(t("not installed: {names}. Run pip install tokenglass again", names=listed(missing)))
    room = memory_room(facts)
    if room is not None and room < ROOM_BYTES:
        found.append(t("only {mb} MB of memory are free, and the default model needs {need}",
                       mb=room // 1_000_000, need=ROOM_BYTES // 1_000_000))  # fmt: skip
    store = facts["store"]
    if store["default_path"] is None:
        found += obstacles_to_fetching(facts)
    return found


def obstacles_to_fetching(facts: dict[str, Any]) -> list[str]:
    """Why the default model, which is not there, could not be fetched now."""
    store, found = facts["store"], []
    if not store["is_writable"]:
        found.append(t("{path} cannot be written: set TOKENGLASS_HOME to another folder", path=store["path"]))
    elif store["free_bytes"] < ROOM_BYTES:
        found.append(t("the disk of {path} is full: set TOKENGLASS_HOME to another", path=store["path"]))
    if {"TOKENGLASS_OFFLINE", "HF_HUB_OFFLINE"} & facts["environment"].keys():
        found.append(t("the default model is not here and downloads are switched off"))
    if facts["packages"]["pip"] is None and "HF_ENDPOINT" not in facts["environment"]:
        found.append(t("the default model is not here and this Python has no pip: python -m ensurepip"))
    return found


def advice(facts: dict[str, Any]) -> list[str]:
    """What could be better, one sentence each."""
    machine, found = facts["machine"], []
    quota, num_threads = machine["quota"], machine["num_threads"]
    if quota is not None and quota < machine["cores"]:
        found.append(
            t(
                "the quota is {quota:g} processors: {more} busy threads would be stopped inside a step, so "
                "{n} is the default",
                quota=quota,
                more=num_threads + 1,
                n=num_threads,
            )
        )
    if machine["cores"] < machine["logical"]:
        found.append(
            t(
                "{logical} processors are {cores} cores: two threads of one core gain nothing",
                logical=machine["logical"],
                cores=machine["cores"],
            )
        )
    if machine["huge_pages"] == "never":
        found.append(t("huge pages are off: madvise in {file} makes decoding faster", file=HUGE_PAGE_SETTING))
    kernels = facts["kernels"]
    if kernels["isas"] and kernels["isa"] and kernels["isa"] != kernels["isas"][0]:
        found.append(
            t("TOKENGLASS_ISA={isa} is slower than {best}", isa=kernels["isa"], best=kernels["isas"][0])
        )
    elif kernels["isa"] == "plain":
        found.append(t("there are no kernels for this processor: plain C++ runs, which is slow"))
    if facts["compiler"] is None:
        found.append(t("no C++ compiler: only an install from source needs one (apt install g++)"))
    store = facts["store"]
    if store["default_path"] is None:
        found.append(
            t("the default model comes with the first run, or now: {command}",
              command=f"tokenglass models pull {store['default_model']}")
        )  # fmt: skip
    for name in facts["environment"]:
        word = name.removeprefix("TOKENGLASS_")
        if word != name and word not in OURS:
            near = get_close_matches(word, OURS, n=1)
            found.append(
                t(
                    "{name} is no variable of ours. Did you mean {near}?",
                    name=name,
                    near=f"TOKENGLASS_{near[0]}",
                )
                if near
                else t("{name} is no variable of ours", name=name)
            )
    return found


def memory_room(facts: dict[str, Any]) -> int | None:
    """Bytes that a run could get; None: the system does not say."""
    machine = facts["machine"]
    known = [machine[name] for name in ("free_bytes", "limit_bytes") if machine[name] is not None]
    return min(known, default=None)
