"""What `doctor` finds out: the machine, the kernels, packages, the store, the environment. No judgement here.

Nothing is measured, fetched or changed, and each fact is read on its own: a broken part must not hide the
others. `root` is another file system for tests. Judgement: `doctor_advice.py`.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tokenglass import __version__
from tokenglass.bench.machine import cpu_model
from tokenglass.cli.errors import error_line
from tokenglass.cli.language import t
from tokenglass.errors import TokenglassError
from tokenglass.hub import DEFAULT_MODEL, bytes_of, store_folder, stored_path
from tokenglass.processors import ROOT, memory_limit, read_line, read_processors

REQUIRED = ("numpy", "tokenizers", "minijinja", "rich", "pip")
EXTRAS = {  # as in pyproject.toml; a test compares them
    "transformers": ("torch", "transformers", "accelerate", "gguf"),
    "peers": ("llama-cpp-python",),
    "oracle": ("torch", "transformers", "accelerate", "gguf", "sentencepiece", "tiktoken"),
    "test": (
        "pytest", "pytest-timeout", "hypothesis", "gguf", "jinja2", "mypy", "ruff", "clang-format",
    ),
}  # fmt: skip
OURS = ("HOME", "OFFLINE", "ISA", "LANG", "NOTES", "TEST_MODELS")  # TOKENGLASS_…
HUBS = ("HF_ENDPOINT", "MODELSCOPE_ENDPOINT", "HF_HUB_OFFLINE", "HF_TOKEN")
NETWORK = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL")


def gather(environ: Mapping[str, str] = os.environ, root: Path = ROOT) -> dict[str, Any]:
    """Every fact, as plain values for JSON. Bytes are in `…_bytes`; None: the system does not say."""
    return {
        "version": __version__,
        "python": platform.python_version(),
        "machine": machine(root),
        "kernels": kernels(),
        "compiler": compiler(environ),
        "packages": {name: installed(name) for name in REQUIRED},
        "extras": {extra: {name: installed(name) for name in names} for extra, names in EXTRAS.items()},
        "store": store(environ),
        "environment": environment(environ),
    }


def machine(root: Path = ROOT) -> dict[str, Any]:
    """Processor, memory, huge pages, and the threads that follow from them."""
    processors = read_processors(root)
    memory = memory_bytes(root)
    return {
        "cpu": cpu_model(),
        "system": f"{platform.system()} {platform.machine()}",
        "logical": processors.logical,
        "cores": processors.cores,
        "quota": processors.quota,
        "num_threads": processors.num_threads,
        "memory_bytes": memory.get("MemTotal"),
        "free_bytes": memory.get("MemAvailable"),
        "limit_bytes": memory_limit(root),
        "huge_pages": huge_pages(root),
    }


def memory_bytes(root: Path) -> dict[str, int]:
    """`MemTotal`, `MemAvailable` and the others of /proc/meminfo, in bytes; empty where there is none."""
    text = read_line(root / "proc/meminfo") or ""
    return {name: int(kb) * 1024 for name, kb in re.findall(r"^(\w+):\s*(\d+) kB$", text, re.MULTILINE)}


def huge_pages(root: Path) -> str | None:
    """The system's setting for transparent huge pages: always, madvise or never."""
    chosen = re.search(r"\[(\w+)\]", read_line(root / "sys/kernel/mm/transparent_hugepage/enabled") or "")
    return chosen[1] if chosen else None


def kernels() -> dict[str, Any]:
    """The instruction sets that can run, best first, the one that is used, or why there is none."""
    try:
        from tokenglass.kernels import cpu, runnable_isas
    except ImportError as error:
        return {"isa": None, "isas": [], "error": t("the extension cannot be loaded: {reason}", reason=error)}
    try:
        return {"isa": cpu(1).isa, "isas": runnable_isas(), "error": None}
    except TokenglassError as error:
        return {"isa": None, "isas": runnable_isas(), "error": error_line(error)}


def compiler(environ: Mapping[str, str]) -> str | None:
    """The C++ compiler that an install from source would find, by its own first line."""
    for name in filter(None, (environ.get("CXX"), "c++", "g++", "clang++")):
        if path := shutil.which(name, path=environ.get("PATH")):
            try:
                said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10)
            except (OSError, subprocess.SubprocessError):
                continue
            if said.returncode == 0:
                return " ".join(said.stdout.split("\n")[0].split()) or name
    return None


def installed(name: str) -> str | None:
    """The version of a package; None: it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def store(environ: Mapping[str, str]) -> dict[str, Any]:
    """The folder of models: where, how full, whether we may write there, and the default model in it."""
    path = store_folder(environ)
    there = next(folder for folder in (path, *path.parents) if folder.exists())
    found = stored_path(DEFAULT_MODEL, store=path)
    return {
        "path": str(path),
        "num_bytes": bytes_of(path),
        "free_bytes": shutil.disk_usage(there).free,
        "is_writable": there.is_dir() and os.access(there, os.W_OK | os.X_OK),
        "default_model": DEFAULT_MODEL,
        "default_path": str(found) if found else None,
    }


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables that change what we do and are set; of an address only the host, of a token nothing."""
    found = {}
    for name in (*sorted(name for name in environ if name.startswith("TOKENGLASS_")), *HUBS, *NETWORK):
        value = environ.get(name) or environ.get(name.lower() if name in NETWORK else name)
        if value:
            found[name] = "…" if name == "HF_TOKEN" else without_password(value)
    return found


def without_password(value: str) -> str:
    """`http://me:secret@proxy:3128/x` as `proxy:3128`; what is no address stays as it is."""
    return urlsplit(value).netloc.rpartition("@")[2] if "://" in value else value.rpartition("@")[2]
