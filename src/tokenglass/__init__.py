"""tokenglass: a glass-box LLM engine. Start reading at `engine/loop.py`."""

__version__ = "0.1.0"
