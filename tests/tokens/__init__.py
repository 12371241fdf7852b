"""Tests of `tokenglass.tokens`; `vocabularies`, `templates` and `corpus` are their material."""
