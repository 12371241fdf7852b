"""The engine: requests in, text out. Open `loop.py` first."""

from tokenglass.engine.load import load
from tokenglass.engine.loop import Engine
from tokenglass.engine.request import Piece, Request, Timings

__all__ = ["Engine", "Piece", "Request", "Timings", "load"]
