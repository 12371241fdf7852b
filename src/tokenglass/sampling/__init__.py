"""Logits in, one token out: `params.py` what was asked, `choose.py` how it is done."""

from tokenglass.sampling.choose import Choice, Draw, choose
from tokenglass.sampling.params import Sampling

__all__ = ["Choice", "Draw", "Sampling", "choose"]
