"""What a pull tells its caller while it works. Drawing it is the caller's affair (`cli/progress.py`)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Stage(StrEnum):
    """What is going on now, in the order it happens; `WAITING` only if it happens."""

    WAITING = "waiting"  # another process is pulling the same model
    DOWNLOADING = "downloading"
    UNPACKING = "unpacking"


@dataclass(frozen=True)
class Progress:
    """`done_bytes` of `total_bytes` in this stage of pulling the model `name`; both 0 while waiting."""

    name: str
    stage: Stage
    done_bytes: int = 0
    total_bytes: int = 0


def ignore(_: Progress) -> None:
    """The listener of a caller who does not want to know."""
