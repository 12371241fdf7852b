"""KV pages: who holds which. Knows nothing of models."""

from tokenglass.cache.pages import PAGE_TOKENS, PagePool

__all__ = ["PAGE_TOKENS", "PagePool"]
