"""Every text of the command line has its Chinese, and English costs nothing for it."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from string import Formatter

import pytest

import tokenglass
from tests.cli.conftest import SOURCE, Command
from tokenglass import errors
from tokenglass.cli import language
from tokenglass.cli.columns import width
from tokenglass.cli.errors import LISTS, error_line, translated
from tokenglass.cli.language import catalogue, choose_language, set_language, t
from tokenglass.cli.main import VERBS, main
from tokenglass.cli.messages_errors import ZH as ERRORS
from tokenglass.cli.parser import wrap_columns
from tokenglass.errors import (
    ContextFullError,
    DownloadError,
    ModelFileError,
    ModelOutputError,
    ParameterError,
    TokenglassError,
    UsageError,
)

PACKAGE = Path(tokenglass.__file__).parent
CLI = PACKAGE / "cli"
FILES = sorted(path for path in CLI.glob("*.py") if not path.name.startswith("messages_"))
HELP_CALLS = ("help", "epilog", "description")


@pytest.fixture(autouse=True)
def _english_again(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(language.VARIABLE, raising=False)
    yield
    set_language("en")


def shown_texts(source: str) -> list[str]:
    """Literals that a file shows through `t(…)`, `help=…`, a Parser's description or a group's title."""
    tree = ast.parse(source)
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found: list[object] = []
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = getattr(call.func, "id", getattr(call.func, "attr", ""))
        shown = [keyword.value for keyword in call.keywords if keyword.arg in HELP_CALLS]
        if name in ("t", "add_argument_group"):
            shown += call.args[:1]
        if name == "Parser":
            shown += call.args[1:2]
        for node in shown:
            for part in (node.body, node.orelse) if isinstance(node, ast.IfExp) else (node,):
                if isinstance(part, ast.Constant):
                    found.append(part.value)
                elif isinstance(part, ast.Name):
                    found.append(constants.get(part.id))
    return [text for text in found if isinstance(text, str)]


def fields(text: str) -> list[str]:
    return sorted(field for _, field, _, _ in Formatter().parse(text) if field is not None)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_text_has_its_chinese(path: Path) -> None:
    missing = [text for text in shown_texts(path.read_text(encoding="utf-8")) if text not in catalogue()]
    assert missing == []


def test_every_verb_has_its_chinese() -> None:
    assert [what for what in VERBS.values() if what not in catalogue()] == []


def test_both_languages_have_the_same_fields() -> None:
    different = {
        english: chinese
        for english, chinese in catalogue().items()
        if fields(english) != fields(chinese) or english.count("%(") != chinese.count("%(")
    }
    assert different == {}


def test_no_text_is_translated_twice_in_different_words() -> None:
    texts: dict[str, str] = {}
    for path in sorted(CLI.glob("messages_*.py")):
        for english, chinese in import_module(f"tokenglass.cli.{path.stem}").ZH.items():
            assert texts.setdefault(english, chinese) == chinese, (path.name, english)


def test_the_walk_sees_calls_help_texts_titles_and_constants() -> None:
    source = (
        'NOTE = "five"\nt("one")\nadd("-x", help="two")\np.add_argument_group("three")\n'
        'Parser("verb", "four", epilog=NOTE)\nt("six" if x else "seven")\nprint("not shown through t")\n'
    )
    assert sorted(shown_texts(source)) == ["five", "four", "one", "seven", "six", "three", "two"]


# errors of the parts below


def error_texts(source: str) -> list[str]:
    """Sentences given to our error classes, each field as `{}`; only what stands there literally."""
    found = []
    for call in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)):
        name = getattr(call.func, "id", getattr(call.func, "attr", ""))
        if name in WHERE_THE_TEXT_IS or name in OUR_ERRORS:
            at = WHERE_THE_TEXT_IS.get(name, 0)
            remedies = [keyword.value for keyword in call.keywords if keyword.arg == "remedy"]
            # argparse puts the option before what it is told
            before = "{}: " if name == "ArgumentTypeError" else ""
            texts = [skeleton(node) for node in [*call.args[at : at + 1], *remedies]]
            found += [before + text for text in texts if text]
    return found


OUR_ERRORS = {
    *(name for name in vars(errors) if name.endswith("Error")),
    "UnreachableError",
    "WrongFileError",
    "ArgumentTypeError",
}
# how many words about the place come before what is wrong
WHERE_THE_TEXT_IS = {
    "ParameterError": 1,
    "ModelFileError": 2,
    "MissingExtraError": 9,
    "fail": 1,
    "refuse": 1,
    "_broken": 2,
    "_refused": 0,
}


def skeleton(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return None


def skeleton_of_template(text: str) -> str:
    return "".join(literal + ("{}" if field else "") for literal, field, _, _ in Formatter().parse(text))


@pytest.mark.parametrize("part", sorted(path.name for path in PACKAGE.iterdir() if path.is_dir()))
def test_every_error_has_its_chinese(part: str) -> None:
    # texts with fields are recognised by the templates of messages_errors.py alone
    known = {english for english in catalogue() if "{" not in english}
    known |= {skeleton_of_template(english) for english in ERRORS}
    texts = [
        (path.name, text)
        for path in sorted((PACKAGE / part).rglob("*.py"))
        for text in error_texts(path.read_text(encoding="utf-8"))
        if text.replace("{}", "").strip(" :,.")
    ]
    assert [text for text in texts if text[1] not in known] == []


def test_the_walk_sees_errors_with_and_without_a_place() -> None:
    source = (
        'raise UsageError(f"no {name!r}", remedy="mend it")\nraise ParameterError("top_p", "is odd")\n'
        'raise ModelFileError(path, f"key {k}", f"is {v}")\nraise ValueError("not ours")\n'
        'raise argparse.ArgumentTypeError(f"is no {word}")\n'
    )
    assert sorted(error_texts(source)) == ["is odd", "is {}", "mend it", "no {}", "{}: is no {}"]


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            ParameterError("top_p", "must be a number from 0 to 1, not 1.5"),
            "top_p 要是 0 到 1 之间的数，不能是 1.5",
        ),
        (
            ModelFileError("a/b.gguf", "magic", "this is a text file", remedy="Download it again"),
            "b.gguf: magic: 这是文本文件。请重新下载",
        ),
        (
            ContextFullError(9, 8),
            "提示词有 9 个词元，上下文窗口只放得下 8 个，其中至少要留一个给答案。"
            "请缩短提示词，或者换一个窗口更长的模型",
        ),
        (
            ModelOutputError(7),
            "位置 7 上没有词元可选：每个 logit 都是 NaN、无穷大或者被禁止。"
            "请检查 logit_bias；如果没有用它，就是模型文件坏了",
        ),
        (
            UsageError("--kv: invalid choice: 'x' (choose from 'f16', 'f32', 'q8')"),
            "--kv：不能是 'x'（可选：'f16'、'f32'、'q8'）",
        ),
        (
            DownloadError("cannot write to /m: a file is in the way of this folder"),
            "不能写入 /m：有个文件占了这个文件夹的名字",
        ),
        (ParameterError("only", "takes prefill, rows, not 'x'"), "only 可以是 prefill、rows，不能是 'x'"),
        (TokenglassError("nobody translated this"), "nobody translated this"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_is_said_in_chinese(error: TokenglassError, line: str) -> None:
    assert error_line(error) == str(error)
    set_language("zh")
    assert error_line(error) == line


def test_no_list_of_an_error_keeps_english_commas() -> None:
    set_language("zh")
    for part in LISTS:
        for english in (text for text in ERRORS if f"{{{part}}}" in text):
            values = {field: "a, b" if field in LISTS else "x" for field in fields(english)}
            assert "a、b" in translated(english.format(**values)), english


def test_words_in_a_value_are_kept_and_never_filled_in() -> None:
    set_language("zh")
    assert translated("no model is called '{n} {0} %s'") == "没有叫 '{n} {0} %s' 的模型"
    assert translated("there is no file 'a\nb'") == "没有文件 'a\nb'"


# choosing the language


def test_a_text_without_chinese_stays_english() -> None:
    set_language("zh")
    assert t("{n} purple ideas", n=3) == "3 purple ideas"
    assert t("a { brace without fields") == "a { brace without fields"


@pytest.mark.parametrize(
    ("arguments", "environment", "code", "rest"),
    [
        (["run", "hi"], {}, "en", ["run", "hi"]),
        (["--lang", "zh", "run", "hi"], {}, "zh", ["run", "hi"]),
        (["run", "hi", "--lang=zh"], {}, "zh", ["run", "hi"]),
        (["run", "--", "--lang", "zh"], {}, "en", ["run", "--", "--lang", "zh"]),
        (["run"], {"TOKENGLASS_LANG": "zh"}, "zh", ["run"]),
        (["run", "--lang", "en"], {"TOKENGLASS_LANG": "zh"}, "en", ["run"]),
        (["run"], {"LANG": "zh_CN.UTF-8"}, "en", ["run"]),
        (["run"], {"LANG": "zh_CN.UTF-8", "TOKENGLASS_LANG": "auto"}, "zh", ["run"]),
        (["run"], {"LANG": "zh_CN.UTF-8", "LC_ALL": "C", "TOKENGLASS_LANG": "auto"}, "en", ["run"]),
        (["run"], {"TOKENGLASS_LANG": ""}, "en", ["run"]),
    ],
)
def test_the_option_wins_over_the_variable(
    arguments: list[str], environment: dict[str, str], code: str, rest: list[str]
) -> None:
    assert choose_language(arguments, environment) == rest
    assert language.language() == code


def test_an_unknown_language_is_refused(tokenglass_: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        tokenglass_("--lang", "fr", "--help").error == "there is no language 'fr'. There are en and zh (中文)"
    )
    assert tokenglass_("--help", "--lang").status == 2
    monkeypatch.setenv(language.VARIABLE, "fr")
    assert tokenglass_("--version").status == 2


@pytest.mark.parametrize("verb", VERBS)
def test_help_is_chinese_and_fits_eighty_columns(
    verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with suppress(SystemExit):  # argparse's way to end
        assert main([verb, "--help", "--lang", "zh"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("用法：")
    assert [line for line in text.splitlines() if width(line) > 80] == []


def test_wide_characters_are_counted_as_two_columns() -> None:
    assert wrap_columns("一二三四五，六 abc def", 6) == ["一二三", "四五，", "六 abc", "def"]
    assert wrap_columns("一二（三）四", 8) == ["一二", "（三）四"]
    assert wrap_columns("一二三（en）", 8) == ["一二三", "（en）"]
    assert wrap_columns("", 5) == [""]
    assert wrap_columns("unbreakable", 5) == ["unbreakable"]


def test_english_imports_no_chinese() -> None:
    code = (
        "import sys; from tokenglass.cli.main import main; main(['--help']); "
        "print([name for name in sys.modules if 'messages_' in name], file=sys.stderr)"
    )
    child = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": SOURCE}, capture_output=True, text=True, check=True
    )
    assert child.stderr == "[]\n"
