"""Imports point down, only down. The table is the one in docs/en/architecture.md; change both together.

Every import statement counts, wherever it stands: in a function, under TYPE_CHECKING, relative or absolute.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "tokenglass"

# part: (its level, what it may import). Everything may import `errors` and itself.
TABLE: dict[str, tuple[int, set[str]]] = {
    "errors": (0, set()),
    "processors": (1, set()),
    "kernels": (1, set()),
    "trace": (1, set()),
    "price": (1, set()),
    "formats": (2, set()),
    "tokens": (3, {"kernels", "formats"}),
    "hub": (3, {"formats"}),
    "models": (4, {"kernels", "formats"}),
    "cache": (4, set()),
    "sampling": (4, {"kernels", "trace"}),
    "fit": (5, {"models.config", "formats", "hub", "cache"}),
    "engine": (
        6,
        {"processors", "kernels", "formats", "models", "cache", "sampling", "tokens", "trace", "fit", "hub"},
    ),
    "api": (7, {"engine", "hub", "sampling", "tokens"}),  # what `import tokenglass as tg` shows
    "client": (7, {"price"}),
    "rag": (7, {"tokens"}),
    "train": (7, {"models", "tokens", "engine"}),
    "server": (8, {"engine", "client", "tokens", "trace", "price", "fit"}),
    "batch": (9, {"client", "server", "hub", "price", "tokens"}),
    "web": (10, {"server", "trace"}),
    "bench": (10, {"kernels", "cache", "tokens", "engine", "client", "fit"}),
}
TABLE["cli"] = (11, set(TABLE))
TABLE["__main__"] = (12, {"cli"})

# The package itself (`from tokenglass import __version__`) holds the public names; it is above `api`.
TABLE[""] = (8, {"api", "engine", "hub", "sampling", "tokens"})
USERS_OF_THE_PACKAGE = {"server", "batch", "web", "bench", "cli"}


def part_of(module: str) -> str:
    """`tokenglass.engine.loop` belongs to `engine`, `tokenglass` itself to the part without a name."""
    return [*module.split("."), ""][1]


def imported_modules(tree: ast.AST, package: str) -> Iterator[str]:
    """Full names of our own modules that this file imports; `package` is the one the file is in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, *filter(None, [node.module])])
            # `from tokenglass import engine` names a part, `from tokenglass import load` a public name
            names = [base]
            if base == "tokenglass":
                parts = [alias.name for alias in node.names]
                names = [f"{base}.{name}" if name in TABLE else base for name in parts]
        else:
            names = []
        yield from filter(is_ours, names)


def is_ours(module: str) -> bool:
    return module == "tokenglass" or module.startswith("tokenglass.")


def violations(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """What this file imports against the table, in words."""
    part = part_of(module)
    if part not in TABLE:
        return [f"{module}: the part {part!r} is not in the table"]
    package = module if is_package else module.rpartition(".")[0]
    allowed = TABLE[part][1] | {"errors"}
    if part in USERS_OF_THE_PACKAGE:
        allowed = allowed | {""}
    found = []
    for imported in imported_modules(ast.parse(source), package):
        inner = imported.removeprefix("tokenglass").removeprefix(".")
        is_allowed = any(inner == name or (name and inner.startswith(f"{name}.")) for name in allowed)
        if part_of(imported) != part and not is_allowed:
            found.append(f"{module} imports {imported}; {part or 'the package'} may import {sorted(allowed)}")
    return found


def module_name(path: Path) -> tuple[str, bool]:
    parts = ["tokenglass", *path.relative_to(SOURCE).with_suffix("").parts]
    is_package = parts[-1] == "__init__"
    return ".".join(parts[:-1] if is_package else parts), is_package


def test_every_file_keeps_to_the_table() -> None:
    paths = sorted(SOURCE.rglob("*.py"))
    assert paths
    found = []
    for path in paths:
        module, is_package = module_name(path)
        found += violations(path.read_text(encoding="utf-8"), module, is_package=is_package)
    assert found == []


def test_table_itself_points_down() -> None:
    for part, (level, allowed) in TABLE.items():
        for name in allowed:
            assert TABLE[name.split(".")[0]][0] < level, f"{part} may not be allowed to import {name}"


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("tokenglass.cache.pages", "import tokenglass.engine.loop"),
        ("tokenglass.cache.pages", "from tokenglass.models import llama"),  # a sibling
        ("tokenglass.tokens.stream", "from tokenglass import engine"),
        ("tokenglass.tokens.stream", "from tokenglass import __version__"),  # the package imports the engine
        ("tokenglass.tokens.stream", "from ..engine.loop import Engine"),
        ("tokenglass.tokens.stream", "from .. import engine"),
        ("tokenglass.hub.lookup", "def late():\n    from tokenglass.tokens.stream import TextStream"),
        ("tokenglass.models.llama", "if TYPE_CHECKING:\n    from tokenglass.engine.request import Request"),
        ("tokenglass.fit.plan", "from tokenglass.models.llama import Llama"),  # only models.config
        ("tokenglass.fit.plan", "from tokenglass.models import config_of_mine"),
        ("tokenglass.errors", "from tokenglass.formats import gguf"),
        ("tokenglass.novelty.thing", "import os"),  # a part nobody has entered in the table
    ],
)
def test_upward_or_sideways_import_is_found(module: str, source: str) -> None:
    assert len(violations(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("tokenglass.cache.pages", "import numpy as np\nfrom tokenglass.errors import UsageError"),
        ("tokenglass.tokens.stream", "from tokenglass.tokens.vocabulary import Vocabulary"),
        (
            "tokenglass.tokens.stream",
            "from .vocabulary import Vocabulary\nfrom ..formats.gguf import GGUFFile",
        ),
        ("tokenglass.fit.plan", "from tokenglass.models.config import Config"),
        ("tokenglass.cli.main", "from tokenglass import __version__\nfrom tokenglass.bench import speed"),
        ("tokenglass.engine.loop", "from tokenglass_extras import thing"),
    ],
)
def test_downward_import_is_allowed(module: str, source: str) -> None:
    assert violations(source, module) == []
