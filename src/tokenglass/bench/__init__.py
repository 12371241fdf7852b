"""Measuring: the machine (`machine.py`), the engine (`measure.py`), others on the same file (`peers.py`)."""
