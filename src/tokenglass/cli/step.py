"""`tokenglass step`: one token at a time by hand, in a terminal or line by line from a pipe.

    Enter   take the draw            b, b 3   back one token, back three
    2       take candidate 2         r, r 20  run on to the end, for 20 tokens
    #123    take any token           q        quit; ? shows this

Everything goes by ids (`engine/stepping.py`): what was taken is never read again as text.
"""

from __future__ import annotations

import json
import math
import re
import sys
from typing import Any

from tokenglass.cli.columns import bar, bare, columns, is_terminal, left, percent, quoted, right, width
from tokenglass.cli.errors import error_line
from tokenglass.cli.language import t
from tokenglass.cli.looking import Opened, add_looking, opened
from tokenglass.cli.output import say, write
from tokenglass.cli.parser import Parser
from tokenglass.cli.prompt import read_prompt
from tokenglass.cli.sampling_options import add_sampling, sampling_of
from tokenglass.engine.stepping import Stepper
from tokenglass.errors import ParameterError, TokenglassError, UsageError
from tokenglass.sampling.params import check_integer
from tokenglass.tokens import TextStream
from tokenglass.trace import Decision

MAX_TOKENS = 256
MAX_LINE = 1000  # characters of a command; stdin may be endless
INTERRUPTED = 130
SHOWN_IDS = 32  # in the last line; --json has them all
HELP = "Enter takes →, N takes N, #ID any token; b back, r run on, q quit, ? help"


def main(arguments: list[str]) -> int:
    """Steps until `q`, the end of stdin or Ctrl-C; the text is printed at the end, whichever it was."""
    values = step_parser().values(arguments)
    has_keyboard = sys.stdin is not None and sys.stdin.isatty()
    if values["prompt"] in (None, "-") and not has_keyboard:
        raise UsageError(
            t("step reads its commands from stdin"), remedy=t('Give the prompt as an argument: step "Hello"')
        )
    text = read_prompt(values["prompt"], "step")
    check_integer("max_tokens", values["max_tokens"], 0, 1 << 40)
    sampling = sampling_of(values)
    prompt = opened(values, text)
    status = 0
    with Stepper(prompt.engine, prompt.ids, sampling=sampling) as stepper:
        session = Session(prompt, stepper, values, has_keyboard=has_keyboard)
        try:
            session.loop()
        except KeyboardInterrupt:
            status = INTERRUPTED
        except TokenglassError:
            session.finish()  # what was taken is not lost
            raise
        session.finish()
    return status


def step_parser() -> Parser:
    """The parser behind `tokenglass step --help`."""
    parser = Parser(
        "step",
        t("One token at a time by hand."),
        epilog=t(HELP) + t(". Commands may come from a pipe, one on each line."),
    )
    add_looking(parser)
    parser.add_argument("--max-tokens", type=int, default=MAX_TOKENS, metavar="N",
        help=t("r runs on for at most N tokens (default: 256)"))  # fmt: skip
    add_sampling(parser)
    return parser


class Session:
    """Shows where the text stands, reads a command, does it, again."""

    def __init__(
        self, prompt: Opened, stepper: Stepper, values: dict[str, Any], *, has_keyboard: bool
    ) -> None:
        self.prompt = prompt
        self.stepper = stepper
        self.vocabulary = prompt.engine.tokenizer.vocabulary
        self.top: int = values["top"]
        self.max_tokens: int = values["max_tokens"]
        self.as_json: bool = values["json"]
        self.has_keyboard = has_keyboard
        self.num_lines = 0

    def loop(self) -> None:
        """Until `q` or the end of the commands. UsageError: a line of a script that is no command; at a
        keyboard it is said, and asked again.
        """
        if self.has_keyboard and not self.as_json:
            say(t(HELP))
        is_shown = False
        decision: Decision | None = None
        while True:
            if not is_shown:
                decision = None if self.stepper.is_full else self.stepper.draw(trace_top=self.top).decision
                self.show(decision)
                is_shown = True
            line = self.read()
            if line is None or line == "q":
                return
            try:
                is_shown = not self.do(line, decision)
            except ParameterError as error:
                if not self.has_keyboard:
                    raise UsageError(
                        t("line {n} of the commands: {what}", n=self.num_lines, what=error_line(error))
                    ) from error
                say(error_line(error))

    def do(self, line: str, decision: Decision | None) -> bool:
        """Does one command; whether the text moved. ParameterError: it cannot be done."""
        stepper = self.stepper
        shown = decision.top if decision else ()
        if line == "?":
            say(t(HELP))
            return False
        if line == "":
            if decision is None:
                raise ParameterError("token", "cannot be taken: the context window is full")
            stepper.take(decision.token_id)
        elif re.fullmatch(r"#\d{1,12}", line):
            stepper.take(int(line[1:]))
        elif re.fullmatch(r"\d{1,9}", line):
            if not 1 <= int(line) <= len(shown):
                raise ParameterError(
                    "number", f"must be from 1 to {len(shown)}", remedy="#ID takes any token"
                )
            stepper.take(shown[int(line) - 1].token_id)
        elif back := re.fullmatch(r"b ?(\d{0,9})", line):
            num = int(back[1] or 1)
            if num > len(stepper.taken_ids):
                raise ParameterError(
                    "b", f"{num} goes back into the prompt; {len(stepper.taken_ids)} are taken"
                )
            stepper.truncate(len(stepper.ids) - num)
        elif on := re.fullmatch(r"r ?(\d{0,9})", line):
            self.run_on(int(on[1] or self.max_tokens))
        else:
            raise ParameterError("command", f"{line[:40]!r} is not known", remedy=t(HELP))
        return True

    def run_on(self, num_tokens: int) -> None:
        """Takes the draws, showing the text as it comes, to the end of the answer or for `num_tokens`."""
        if self.stepper.is_ended:
            raise ParameterError("r", "cannot run on: the answer has ended", remedy="b goes back")
        stream = self.stream()
        for _ in range(num_tokens):
            if self.stepper.is_full:
                break
            token_id = self.stepper.draw().token_id
            self.stepper.take(token_id)
            if self.stepper.is_ended:
                break
            if not self.as_json:
                write(stream.push(token_id))
        if not self.as_json:
            write("\n")

    def show(self, decision: Decision | None) -> None:
        """The text so far and the candidates."""
        if self.as_json:
            write(json.dumps(self.record(decision), ensure_ascii=False) + "\n")
            return
        stepper = self.stepper
        lines = ["", self.tail()]
        if stepper.is_ended:
            end = quoted(self.vocabulary.token_bytes(stepper.ids[-1]))
            lines.append(t("{end} ends the answer here; b goes back, q quits", end=end))
        if decision is None:
            lines.append(t("the context window of {n} is full; b goes back", n=len(stepper.ids)))
        else:
            lines += self.candidates(decision)
        write("\n".join(lines) + "\n")

    def candidates(self, decision: Decision) -> list[str]:
        """A line for each: number, → at the draw, token, id, probabilities, bar."""
        has_stages = self.stepper.sampling.temperature > 0
        token_cells = min(max(columns() - 58, 10), 30)
        bar_cells = max(4, columns() - token_cells - 38)
        lines = []
        for i, candidate in enumerate(decision.top):
            mark = "→" if candidate.token_id == decision.token_id else " "
            token = left(quoted(self.vocabulary.token_bytes(candidate.token_id)), token_cells)
            line = f"{mark}{i + 1:4} {token} {right(f'#{candidate.token_id}', 8)}"
            line += " " + right(percent(candidate.raw_p), 9)
            if has_stages:
                line += " " + right(percent(candidate.p), 9)
            lines.append(f"{line} {bar(candidate.raw_p, bar_cells)}".rstrip())
        head = f"      {left('', token_cells)} {right(t('id'), 8)} {right(t('raw'), 9)}"
        lines.insert(0, head + (" " + right(t("drawn from"), 9) if has_stages else ""))
        rest = left("      " + t("rest"), token_cells + 15) + " " + right(percent(decision.rest_raw_p), 9)
        lines.append(rest + (" " + right(percent(decision.rest_p), 9) if has_stages else ""))
        lines.append(
            "      "
            + t("token {n}, entropy {bits} bits", n=len(self.stepper.taken_ids) + 1,
                bits=f"{decision.entropy / math.log(2):.2f}")
        )  # fmt: skip
        return lines

    def tail(self) -> str:
        """The tokens taken, between `│`; the newest ones where they do not fit in two lines."""
        pieces: list[str] = []
        room = 2 * columns() - 4
        for token_id in reversed(self.stepper.taken_ids):
            piece = bare(self.vocabulary.token_bytes(token_id))
            room -= width(piece) + 1
            if room < 0:
                pieces.append("…")
                break
            pieces.append(piece)
        return "│".join(reversed(pieces)) if pieces else t("(nothing taken yet)")

    def read(self) -> str | None:
        """The next command without space around it; None at the end of stdin."""
        if self.has_keyboard and not self.as_json:
            write("> ")
        line = sys.stdin.readline(MAX_LINE)
        if not line:
            return None
        self.num_lines += 1
        return line.strip()

    def finish(self) -> None:
        """The text, and what it took."""
        stepper = self.stepper
        text = self.text()
        if self.as_json:
            record = {"text": text, "token_ids": stepper.taken_ids, "prompt_ids": self.prompt.ids}
            write(json.dumps({**record, "seed": stepper.sampling.seed}, ensure_ascii=False) + "\n")
            return
        write(("\n" if is_terminal() else "") + text + ("" if text.endswith("\n") else "\n"))
        taken = stepper.taken_ids
        ids = " ".join(f"#{i}" for i in taken[:SHOWN_IDS]) + (" …" if len(taken) > SHOWN_IDS else "")
        line = t("{n} tokens taken in {passes} forward passes", n=len(taken), passes=stepper.num_passes)
        say(f"{line}: {ids}" if taken else line)

    def stream(self) -> TextStream:
        """A text stream that has the taken tokens behind it."""
        stream = TextStream(self.vocabulary, after=self.before)
        for token_id in self.stepper.taken_ids:
            stream.push(token_id)
        return stream

    @property
    def before(self) -> int | None:
        """The id whose text goes on; None: a chat, where an answer begins."""
        return None if self.prompt.chat else self.prompt.ids[-1]

    def text(self) -> str:
        """What the taken tokens spell, as `run` would print it."""
        return self.prompt.engine.tokenizer.decode(self.stepper.taken_ids, after=self.before)

    def record(self, decision: Decision | None) -> dict[str, Any]:
        """One line of --json: where the text stands, the draw and the candidates."""
        stepper = self.stepper
        head: dict[str, Any] = {
            "position": len(stepper.ids),
            "token_ids": stepper.taken_ids,
            "is_ended": stepper.is_ended,
        }
        if decision is None:
            return {**head, "draw": None, "candidates": []}
        return {
            **head,
            "draw": decision.token_id,
            "rank": decision.rank,
            "entropy": decision.entropy,
            "stages": [stage._asdict() for stage in decision.stages],
            "rest_raw_p": decision.rest_raw_p,
            "rest_p": decision.rest_p,
            "candidates": [
                {
                    "number": i + 1,
                    "token_id": candidate.token_id,
                    "text": self.vocabulary.token_bytes(candidate.token_id).decode(errors="replace"),
                    "bytes": list(self.vocabulary.token_bytes(candidate.token_id)),
                    "logit": candidate.logit,
                    "raw_p": candidate.raw_p,
                    "p": candidate.p,
                }
                for i, candidate in enumerate(decision.top)
            ],
        }
