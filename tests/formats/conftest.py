"""The fixture of the hostile-file tests."""

from __future__ import annotations

import pytest

from tests.formats.hostile import Open
from tokenglass.formats import GGUFFile


@pytest.fixture(scope="module")
def open_bytes(tmp_path_factory: pytest.TempPathFactory) -> Open:
    path = tmp_path_factory.mktemp("hostile") / "model.gguf"

    def open_bytes(content: bytes) -> GGUFFile:
        path.unlink(missing_ok=True)  # a mapped file must not be rewritten in place
        path.write_bytes(content)
        return GGUFFile.open(path)

    return open_bytes
