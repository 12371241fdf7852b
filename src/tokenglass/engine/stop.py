"""Stop strings, matched on text and not on tokens: a stop may begin in the middle of one token and end in
another.
"""

from __future__ import annotations


class StopStrings:
    """Passes text through up to the first stop string, which it swallows.

    Text that could still become a stop string is held back: nothing of a stop is ever shown, and `flush`
    releases what was held when the text ends another way.
    """

    def __init__(self, stops: tuple[str, ...]) -> None:
        self.stops = stops
        self._held = ""

    def push(self, text: str) -> tuple[str, bool]:
        """(text that may be shown now, whether a stop string was reached)."""
        if not self.stops:
            return text, False
        self._held += text
        found = [at for at in (self._held.find(stop) for stop in self.stops) if at >= 0]
        if found:
            shown, self._held = self._held[: min(found)], ""
            return shown, True
        keep = self._possible_beginning()
        shown, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return shown, False

    def flush(self) -> str:
        """The text still held back."""
        held, self._held = self._held, ""
        return held

    def _possible_beginning(self) -> int:
        """Length of the longest end of the held text that is the beginning of a stop string."""
        longest = min(len(self._held), max(len(stop) for stop in self.stops) - 1)
        for length in range(longest, 0, -1):
            if any(stop.startswith(self._held[-length:]) for stop in self.stops):
                return length
        return 0
