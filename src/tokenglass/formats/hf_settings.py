"""Readings of a JSON object of settings, each with its kind checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenglass.errors import ModelFileError
from tokenglass.formats.cursor import shown

MAX_COUNT = 1 << 31


@dataclass(frozen=True)
class Settings:
    """The object of config.json; each reading checks the kind."""

    config: Mapping[str, Any]
    path: Path

    def count(self, key: str, default: int | None = None) -> int:
        """A positive whole number; `default` where the key is absent or null."""
        value = self.config.get(key)
        value = default if value is None else value
        if value is None:
            raise ModelFileError(self.path, key, "is missing")
        if type(value) is not int or not 1 <= value < MAX_COUNT:
            raise ModelFileError(self.path, key, f"is {shown(str(value)[:80])}, expected 1 to {MAX_COUNT}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A finite number; `default` where the key is absent or null."""
        value = self.config.get(key)
        value = default if value is None else value
        if value is None:
            raise ModelFileError(self.path, key, "is missing")
        if type(value) not in (int, float) or not abs(value) < 1e30:
            raise ModelFileError(self.path, key, f"is {shown(str(value)[:80])}, and a number is needed")
        return float(value)

    def flag(self, key: str, default: bool) -> bool:
        """True or false; `default` where the key is absent or null."""
        value = self.config.get(key)
        value = default if value is None else value
        if type(value) is not bool:
            raise ModelFileError(self.path, key, "must be true or false")
        return value

    def inner(self, key: str) -> Settings | None:
        """The object behind `key`; None where it is absent or null."""
        value = self.config.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise ModelFileError(self.path, key, "must be a JSON object")
        return Settings(value, self.path)

    def text(self, key: str, default: str) -> str:
        """A string; `default` where the key is absent or null."""
        value = self.config.get(key)
        value = default if value is None else value
        if not isinstance(value, str):
            raise ModelFileError(self.path, key, "must be a string")
        return value
