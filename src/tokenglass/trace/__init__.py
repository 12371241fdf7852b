"""What happened at each token: plain records (`records.py`), stored as JSONL and read back (`jsonl.py`)."""

from tokenglass.trace.records import Candidate, Decision, Stage

__all__ = ["Candidate", "Decision", "Stage"]
