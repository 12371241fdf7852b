"""The tests mirror `src/tokenglass`; helpers shared by several of them live in `tests/support`."""
