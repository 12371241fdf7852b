"""`tokenglass tokens`: a text as a model sees it: pieces, ids, bytes, places, and what each script costs.

Loads tokenizers only, never weights. What is shown: `tokens_view.py`; where tokens lie: `tokens/spans.py`;
`--vocab` and `--special`: `vocab.py`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tokenglass.cli.columns import is_terminal
from tokenglass.cli.language import t
from tokenglass.cli.options import utf8
from tokenglass.cli.output import say, write
from tokenglass.cli.parser import Parser
from tokenglass.cli.progress import download_progress
from tokenglass.cli.prompt import MAX_PROMPT_BYTES, add_template, given_for_chat, read_prompt, template_of
from tokenglass.cli.scripts import loss_hint
from tokenglass.cli.tokens_view import Encoded, estimated, record, show_pieces, show_table, summary
from tokenglass.cli.vocab import search, special_tokens
from tokenglass.errors import DownloadError, ParameterError, TokenglassError
from tokenglass.formats import GGUFFile
from tokenglass.formats.json_file import read_json
from tokenglass.hub import DEFAULT_MODEL, model_name, rank_file, tokenizer_path
from tokenglass.sampling.params import check_integer
from tokenglass.tokens import Tokenizer
from tokenglass.tokens.ranks import encoding_of
from tokenglass.tokens.spans import Spans
from tokenglass.tokens.vocabulary import Style

TERMINAL_LIMIT = 100  # tokens listed in a terminal
CHAT_CHARS = 20_000  # a longer text is not rendered as a chat only to be counted
TOKENIZER_FILES = (".json", ".txt", ".model", ".tiktoken", ".bpe")  # any other file is taken for a model


def main(arguments: list[str]) -> int:
    """Shows a text's tokens, or looks into the vocabulary."""
    options = tokens_parser().values(arguments)
    limit = options["limit"] if options["limit"] is not None else TERMINAL_LIMIT if is_terminal() else 0
    check_integer("limit", limit, 0, 1 << 40)
    is_lookup = options["vocab"] is not None or options["special"]
    text = "" if is_lookup else read_text(options["text"], is_words=options["words"])  # before any download
    models: list[tuple[str, Tokenizer, int | None]] = []
    absent: dict[str, str] = {}  # models whose tokenizer is not to be had, and why: they get an estimate
    for name in options["model"] or [DEFAULT_MODEL]:
        try:
            models.append(opened(name))
        except DownloadError as error:
            if is_lookup or name == DEFAULT_MODEL:
                raise
            absent[name] = str(error)
    if is_lookup:
        for name, tokenizer, _ in models:
            if len(models) > 1 and not options["json"]:
                write(f"{name}\n")
            vocabulary = tokenizer.vocabulary
            if options["special"]:
                special_tokens(vocabulary, name=name, as_json=options["json"])
            else:
                search(vocabulary, options["vocab"], limit=limit, name=name, as_json=options["json"])
        return 0
    results = [encoded(*model, text, options) for model in models]
    if options["json"]:
        write(json.dumps(record(text, results, absent), ensure_ascii=False) + "\n")
        return 0
    for result in results:
        if len(results) > 1:
            write(f"{result.name}\n")
        show_pieces(result, limit or len(result.ids))
        if len(results) == 1:
            show_table(result, limit or len(result.ids))
        if hint := loss_hint(result.tokenizer, result.spans.text):
            say(f"{result.name}: {hint}")
        elif not result.spans.is_exact and result.tokenizer.vocabulary.style is not Style.WORDPIECE:
            say(t("{name} does not give this text back byte for byte: some of it is dropped or composed",
                  name=result.name))  # fmt: skip
    if results:
        write("\n" + summary(text, results) + "\n")
    for name, why in absent.items():
        write(estimated(name, text) + "\n")
        say(t("{name} was not counted: {why}", name=name, why=why))
    return 0


def tokens_parser() -> Parser:
    """The parser behind `tokenglass tokens --help`."""
    parser = Parser("tokens", t("A text as a model sees it: its tokens, and what they cost."))
    add = parser.add_argument
    add("text", nargs="?", type=utf8, metavar="TEXT|FILE",
        help=t("a text, or the path of a file; - or nothing: stdin"))  # fmt: skip
    add("-m", "--model", action="append", metavar="MODEL",
        help=t("path of a model or a tokenizer's file, or a name; several: side by side"))  # fmt: skip
    add("--text", action="store_true", dest="words", help=t("the argument is the text, never a file"))
    add("--chat", action="store_true", help=t("as one turn of a chat, by the model's template"))
    add("--control", action="store_true", help=t("control tokens written in the text count as such"))
    add("--limit", type=int, metavar="N",
        help=t("list N tokens (a terminal: 100; else, and with 0: all)"))  # fmt: skip
    add("--vocab", type=utf8, metavar="PATTERN",
        help=t("look up tokens by text, /regex/, bytes (0xE5A4A9) or id (#123)"))  # fmt: skip
    add("--special", action="store_true", help=t("list the special tokens"))
    add("--json", action="store_true", help=t("one JSON object with everything"))
    add_template(parser)
    return parser


def opened(name: str) -> tuple[str, Tokenizer, int | None]:
    """(name, tokenizer, context window) of a model; its weights stay on disk.

    DownloadError: the name is known, but its tokenizer is not here and cannot be fetched.
    """
    encoding = None if os.path.exists(name) else encoding_of(name)
    with download_progress() as progress:
        if encoding:
            path = rank_file(encoding.name, progress=progress)
        else:
            path = tokenizer_path(name, progress=progress)
    if encoding:
        return name, Tokenizer.from_path(path, encoding=encoding.name), None
    if path.is_dir() or path.suffix in TOKENIZER_FILES:
        config = (path if path.is_dir() else path.parent) / "config.json"
        settings = read_json(config) if config.is_file() else {}
        window = settings.get("max_position_embeddings", settings.get("n_positions"))  # gpt2 has the second
        return model_name(path), Tokenizer.from_path(path), window if type(window) is int else None
    with GGUFFile.open(path) as file:
        architecture = file.get("general.architecture", str, "")
        return (
            model_name(path),
            Tokenizer.from_gguf(file),
            file.get(f"{architecture}.context_length", int, None),
        )


def read_text(argument: str | None, *, is_words: bool) -> str:
    """The text to look at; may be empty. ParameterError: it is not UTF-8, or longer than any prompt."""
    if argument is None or argument == "-":
        try:
            return read_prompt(argument, "tokens")
        except ParameterError as error:
            if "is empty" in str(error):
                return ""
            raise
    if is_words or not _is_file(argument):
        return argument
    say(t("reading the file {path} (--text: the words themselves)", path=argument))
    try:
        with Path(argument).open("rb") as file:
            raw = file.read(MAX_PROMPT_BYTES + 1)
    except OSError as error:
        raise TokenglassError(f"cannot read {argument}: {error.strerror}") from error
    if len(raw) > MAX_PROMPT_BYTES:
        raise ParameterError("file", f"has more than {MAX_PROMPT_BYTES >> 20} MB")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise ParameterError("file", f"is not UTF-8 at byte {error.start}") from None


def encoded(
    name: str, tokenizer: Tokenizer, context_length: int | None, text: str, options: dict[str, Any]
) -> Encoded:
    """The tokens of `text`, and how many there would be in the other forms."""
    control = options["control"]
    raw = tokenizer.encode(text, control=control)
    num_text = len(tokenizer.encode(text, bos=False, control=True)) if control else len(raw)
    if not control and raw[:1] == [tokenizer.vocabulary.bos_id]:
        num_text -= 1  # put there by the model's own rule: plain text never spells it
    has_template = tokenizer.chat.exists
    shown, within, num_chat = raw, text, None
    wants_chat = [*given_for_chat(options), *(["--chat"] if options["chat"] else [])]
    if wants_chat and not has_template:
        raise ParameterError(wants_chat[0], "needs a chat template, and this model has none")
    if has_template and (wants_chat or len(text) <= CHAT_CHARS):
        try:
            chat = tokenizer.chat.render([{"role": "user", "content": text}], **template_of(options))
            chat_ids = tokenizer.encode_rendered(chat)
            num_chat = len(chat_ids)
            if options["chat"]:
                shown, within = chat_ids, chat.text
        except TokenglassError:
            if wants_chat:
                raise
    pieces = [tokenizer.vocabulary.token_bytes(i) for i in shown]
    return Encoded(
        name, tokenizer, context_length, shown, Spans(within, pieces), num_text, len(raw), num_chat
    )


def _is_file(argument: str) -> bool:
    """Whether there is something to read at that path: a file, a pipe such as <(command), a device."""
    try:
        return os.path.exists(argument) and not os.path.isdir(argument)
    except ValueError:  # a NUL in it
        return False
