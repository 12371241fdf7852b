"""What happened at each token: plain records (`records.py`), stored as JSONL and read back (`jsonl.py`)."""

from tokenglass.trace.jsonl import event_json, read_trace, write_event, write_header
from tokenglass.trace.records import Candidate, Decision, Stage, TokenEvent

__all__ = [
    "Candidate",
    "Decision",
    "Stage",
    "TokenEvent",
    "event_json",
    "read_trace",
    "write_event",
    "write_header",
]
