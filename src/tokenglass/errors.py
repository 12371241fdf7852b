"""Every exception a user can meet. Each one says what went wrong, where, and how to mend it.

    TokenglassError
    ├─ UsageError                  something the caller asked for
    │  ├─ ParameterError           one option or field has a value outside its range
    │  ├─ ContextFullError         the prompt does not fit the model's window
    │  └─ ChatTemplateError        the model's chat template refuses these messages, or is itself unusable
    ├─ ModelNotFoundError          no path, local store or catalogue knows this name
    ├─ ModelFileError              a model file is cut, inconsistent or of a kind we cannot read
    ├─ ModelOutputError            the model computed no usable number
    ├─ EngineDiedError             the process of an engine has ended, and with it every request there
    ├─ DownloadError               fetching a model failed: network, disk or checksum
    └─ MissingExtraError           a command needs an optional package

The command line prints `str(error)` as one line and exits; nothing here needs a traceback to be understood.
"""

from __future__ import annotations

from pathlib import Path


class TokenglassError(Exception):
    """A problem described for the person who can mend it: `what` happened and, where known, the `remedy`."""

    exit_code = 1

    def __init__(self, what: str, *, remedy: str | None = None) -> None:
        self.what = what
        self.remedy = remedy
        super().__init__(f"{what}. {remedy}" if remedy else what)


class UsageError(TokenglassError):
    """The caller asked for something that cannot be done as asked."""

    exit_code = 2


class ParameterError(UsageError):
    """`name` is the parameter at fault, as the user wrote it: `top_p must be between 0 and 1, not 1.5`."""

    def __init__(self, name: str, problem: str, *, remedy: str | None = None) -> None:
        self.name = name
        super().__init__(f"{name} {problem}", remedy=remedy)


class ContextFullError(UsageError):
    """The prompt needs more positions than the model has; both numbers are said."""

    def __init__(self, prompt_tokens: int, context_length: int) -> None:
        self.prompt_tokens = prompt_tokens
        self.context_length = context_length
        super().__init__(
            f"the prompt has {prompt_tokens} tokens and the context window holds {context_length}, "
            "of which at least one is needed for the answer",
            remedy="Shorten the prompt, or take a model with a longer window",
        )


class ChatTemplateError(UsageError):
    """The chat template refused the messages (its own words are kept) or broke its bounds on time or size."""


class ModelNotFoundError(TokenglassError):
    """No file, stored model or catalogue entry has this name."""


class ModelFileError(TokenglassError):
    """`field` names the part of the file that is wrong, for example `tensor blk.0.attn_q.weight: offset`."""

    def __init__(self, path: Path | str, field: str, problem: str, *, remedy: str | None = None) -> None:
        self.path = Path(path)
        self.field = field
        super().__init__(f"{self.path.name}: {field}: {problem}", remedy=remedy)


class ModelOutputError(TokenglassError):
    """Every logit of a row is NaN, infinite or banned: broken weights, or nothing is left to choose."""

    def __init__(self, position: int) -> None:
        self.position = position
        super().__init__(
            f"no token can be chosen at position {position}: every logit is NaN, infinite or banned",
            remedy="Check logit_bias; if there is none, the model file is broken",
        )


class EngineDiedError(TokenglassError):
    """`how` says what ended it: a signal, an exit status, its own last words, or that it was closed."""

    def __init__(self, how: str, *, remedy: str | None = "Load the model again") -> None:
        self.how = how
        super().__init__(f"the engine's process has ended: {how}", remedy=remedy)


class DownloadError(TokenglassError):
    """A model could not be fetched; nothing half-written is left behind."""


class MissingExtraError(TokenglassError):
    """`extra` is the name of the optional dependency group to install."""

    def __init__(self, what: str, extra: str) -> None:
        self.extra = extra
        super().__init__(
            f"{what} needs the extra [{extra}]", remedy=f"Install it: pip install 'tokenglass[{extra}]'"
        )
