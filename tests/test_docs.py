"""The two languages of the documentation stay together, and no committed file names one machine's folders."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MACHINE_PATH = re.compile(r"(?<![\w.~$}/-])/(?:root|home|work|Users)/\w")


def pages(language: str) -> dict[str, str]:
    folder = ROOT / "docs" / language
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in folder.rglob("*.md")}


def outline(text: str) -> list[str]:
    """The level of each heading, in order, and every code block as it stands: what both languages share."""
    blocks = re.findall(r"^```.*?^```", text, re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return [heading[0] for heading in re.findall(r"^(#+) (.*)$", prose, re.MULTILINE)] + blocks


def committed_texts() -> list[tuple[str, str]]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode != 0:
        pytest.skip("this is not a git checkout")
    names = [name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()]
    return [(name, (ROOT / name).read_text(encoding="utf-8", errors="replace")) for name in names]


def test_both_languages_have_the_same_pages() -> None:
    assert sorted(pages("en")) == sorted(pages("zh"))


def test_each_page_has_the_same_headings_and_code_in_both_languages() -> None:
    english, chinese = pages("en"), pages("zh")
    if (ROOT / "README.zh-CN.md").exists():
        english["README"] = (ROOT / "README.md").read_text(encoding="utf-8")
        chinese["README"] = (ROOT / "README.zh-CN.md").read_text(encoding="utf-8")
    different = [
        name for name in english.keys() & chinese.keys() if outline(english[name]) != outline(chinese[name])
    ]
    assert different == []


def quotations(text: str) -> list[tuple[str, str]]:
    """(file, lines) of each python block that begins with `# src/…`: it claims to stand there as it is."""
    return re.findall(r"^```python\n# (src/\S+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_quoted_code_stands_in_its_file(language: str) -> None:
    quoted = [(page, *quotation) for page, text in pages(language).items() for quotation in quotations(text)]
    assert quoted
    missing = [
        (page, file, lines)
        for page, file, lines in quoted
        if lines not in (ROOT / file).read_text(encoding="utf-8")
    ]
    assert missing == []


def test_a_quotation_is_a_python_block_that_names_its_file() -> None:
    text = "```python\n# src/a/b.py\n    x = 1\n```\n\n```python\n# no file\ny = 2\n```\n"
    assert quotations(text) == [("src/a/b.py", "    x = 1\n")]


def test_outline_sees_headings_and_code_but_not_comments_in_code() -> None:
    assert outline("# One\ntext\n```bash\n# no heading\nls\n```\n## Two\n") == [
        "#",
        "##",
        "```bash\n# no heading\nls\n```",
    ]


def test_no_committed_file_names_a_path_of_one_machine() -> None:
    found = [
        f"{name}: {match.group()}"
        for name, text in committed_texts()
        for match in MACHINE_PATH.finditer(text)
    ]
    assert found == []


@pytest.mark.parametrize(
    "text", ["cd /ro" + "ot/models", "'/ho" + "me/me'", "=/wo" + "rk/main", "(/Us" + "ers/x"]
)
def test_machine_path_is_recognised(text: str) -> None:
    assert MACHINE_PATH.search(text)


@pytest.mark.parametrize(
    "text", ["https://example.org/work/x", "~/work/x", "$HOME/work/x", "a/root/b", "/dev/null"]
)
def test_other_paths_are_not_machine_paths(text: str) -> None:
    assert not MACHINE_PATH.search(text)
