"""Bytes before you run: what a model needs, from its header alone. Open `plan.py`."""

from tokenglass.fit.plan import KV_TYPES, CacheLayers, Plan, cache_layers, plan

__all__ = ["KV_TYPES", "CacheLayers", "Plan", "cache_layers", "plan"]
