"""One line for every run and bench, on this machine only: nothing here is ever sent anywhere.

    $TOKENGLASS_HOME/notes.jsonl      (else the folder above the models in the platform's cache folder)
    $TOKENGLASS_HOME/notes.1.jsonl    the 5 MB before, once there were so many

TOKENGLASS_NOTES=0 writes nothing; TOKENGLASS_NOTES=prompts keeps prompts, as `run --with-prompts` does. A
note that cannot be written is no reason for a run to fail. Read by `notes.py`.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenglass import __version__
from tokenglass.cli.language import t
from tokenglass.cli.output import say
from tokenglass.errors import TokenglassError
from tokenglass.hub import store_folder
from tokenglass.hub.store import locked

if TYPE_CHECKING:
    from tokenglass.cli.options import RunOptions
    from tokenglass.cli.summary import Answer
    from tokenglass.engine import Request

MAX_BYTES = 5_000_000  # of one file: some ten thousand notes
# What a note may say, in the order in which it is said. Names as in `run --json`.
FIELDS = (
    "time", "verb", "version", "model", "prompt_tokens", "output_tokens", "finish_reason",
    "forward_passes", "time_to_first_token_s", "prefill_tokens_per_s", "decode_tokens_per_s", "tokens_per_s",
    "memory_bytes", "seed", "sha256", "prompt",
)  # fmt: skip
Note = dict[str, Any]


def journal_path(environ: Mapping[str, str] = os.environ) -> Path:
    """The file that holds the newest notes. DownloadError: this account has no folder for it."""
    return store_folder(environ).parent / "notes.jsonl"


def note_run(model: str, answer: Answer, request: Request, prompt: str, options: RunOptions) -> None:
    """Notes a run, finished or stopped; with `--verbose` a line on stderr says why that could not be done."""
    is_kept = options.with_prompts or os.environ.get("TOKENGLASS_NOTES", "").lower() == "prompts"
    problem = note_answer("run", model, answer, request, prompt=prompt if is_kept else None)
    if problem and options.verbose:
        say(t("no note was written: {reason}", reason=problem))


def note_answer(
    verb: str, model: str, answer: Answer, request: Request, *, prompt: str | None = None
) -> str | None:
    """Notes an answer of `run` or `chat`. None, or in words why it could not be written."""
    timings = answer.timings
    return add_note(
        verb,
        model=model,
        prompt_tokens=timings.prompt_tokens,
        output_tokens=timings.output_tokens,
        finish_reason=answer.finish_reason,
        forward_passes=timings.forward_passes,
        time_to_first_token_s=timings.time_to_first_token_s if answer.token_ids else None,
        prefill_tokens_per_s=timings.prefill_tokens_per_s if answer.token_ids else None,
        decode_tokens_per_s=timings.decode_tokens_per_s if timings.output_tokens > 1 else None,
        tokens_per_s=timings.tokens_per_s if answer.token_ids else None,
        memory_bytes=answer.memory_bytes,
        seed=None if request.sampling.is_greedy else request.sampling.seed,
        sha256=answer.sha256,
        prompt=prompt,
    )


def note_bench(record: Mapping[str, Any]) -> None:
    """Notes what `bench` measured of this engine: the median of each rate."""
    from statistics import median

    def middle(metric: str) -> float | None:
        values = record["results"].get(metric, {}).get("tokenglass")
        return median(values) if values else None

    plan = record["plan"]
    longest, least = max(plan["prefills"], default=0), min(plan["depths"], default=0)
    add_note(
        "bench",
        model=record["model"],
        prompt_tokens=longest,
        output_tokens=plan["decode"],
        prefill_tokens_per_s=middle(f"prefill_{longest}_tokens_per_s"),
        decode_tokens_per_s=middle(f"decode_{least}_tokens_per_s"),
        memory_bytes=middle("memory_bytes"),
        sha256=record["sha256"],
    )


def add_note(verb: str, environ: Mapping[str, str] = os.environ, **values: Any) -> str | None:
    """Appends one line. None, or in words why it could not be written; nothing is raised for that."""
    switch = environ.get("TOKENGLASS_NOTES", "1").lower()
    if switch in ("0", "off", "no", "false"):
        return None
    known: Note = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "verb": verb,
        "version": __version__,
    }
    known |= {name: round(value, 4) if isinstance(value, float) else value for name, value in values.items()}
    note = {name: known[name] for name in FIELDS if known.get(name) is not None}
    try:
        _append(journal_path(environ), json.dumps(note, ensure_ascii=False).encode(errors="replace") + b"\n")
    except OSError as error:
        return error.strerror or str(error)
    except TokenglassError as error:
        return str(error)
    return None


def read_notes(environ: Mapping[str, str] = os.environ) -> tuple[list[Note], int]:
    """(all notes, oldest first; how many lines are no notes). TokenglassError: they cannot be read."""
    path, notes, num_bad = journal_path(environ), [], 0
    for file in (older(path), path):
        try:
            lines = file.read_bytes().splitlines()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise TokenglassError(
                t("cannot read {path}: {reason}", path=file, reason=error.strerror)
            ) from error
        for line in lines:
            try:
                note = json.loads(line)
            except (ValueError, RecursionError):
                note = None
            if isinstance(note, dict):
                notes.append({name: note[name] for name in FIELDS if _is_plain(note.get(name))})
            else:
                num_bad += 1
    return notes, num_bad


def clear_notes(environ: Mapping[str, str] = os.environ) -> None:
    """Removes every note. TokenglassError: a file cannot be removed."""
    path = journal_path(environ)
    for file in (older(path), path):
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise TokenglassError(
                t("cannot remove {path}: {reason}", path=file, reason=error.strerror)
            ) from error


def older(path: Path) -> Path:
    """Where the notes before the newest 5 MB are."""
    return path.with_name("notes.1.jsonl")


def _append(path: Path, line: bytes) -> None:
    """Writes `line` in one call at the end, so that two processes never mix theirs (O_APPEND, POSIX)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if _is_full(path, line):
        with locked(path.parent / "models", path.name, on_wait=lambda: None):
            if _is_full(path, line):  # another process may have been faster
                path.replace(older(path))
    without_waiting = getattr(os, "O_NONBLOCK", 0)  # a pipe in the file's place must not hold us up
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | without_waiting, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is not a file")
        os.write(handle, line)
    finally:
        os.close(handle)


def _is_full(path: Path, line: bytes) -> bool:
    try:
        return path.stat().st_size + len(line) > MAX_BYTES
    except FileNotFoundError:
        return False


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)
