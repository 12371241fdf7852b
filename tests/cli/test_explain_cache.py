"""`tokenglass explain-cache`: two loops that compute the same, counted, timed and drawn."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.cli.conftest import Command, child, finish
from tests.support.tiny_llama import TinyLlama, write_tiny_llama
from tokenglass.cli.cache_loops import Measured, cached_loop, naive_loop
from tokenglass.cli.cache_plot import HEIGHT, WIDTH, svg_plot, text_plot
from tokenglass.cli.explain_cache import lengths, tenfold_from
from tokenglass.engine import Request, load


@pytest.fixture
def explain(tokenglass_: Command, tiny_model_path: Path) -> Command:
    return lambda *arguments: tokenglass_("explain-cache", "-m", tiny_model_path, *arguments)


def test_both_loops_give_what_the_engine_gives_and_return_all_pages(tiny_model_path: Path) -> None:
    engine = load(tiny_model_path, num_threads=1)
    ids = engine.tokenizer.encode("the cat is on the mat")
    request = Request(prompt_ids=ids, max_tokens=40, ignore_eos=True)
    expected = [token for piece in engine.stream(request) for token in piece.token_ids]
    for loop in (naive_loop, cached_loop):
        assert [token for token, _ in loop(engine, ids, 40)] == expected
        engine.scheduler.pool.check([])


def test_rows_and_bytes_are_what_the_formulas_say(explain: Command) -> None:
    record = explain("the cat is", "--max-tokens", 20, "--json").json
    p, n = record["prompt_tokens"], 20
    assert record["same_ids"] is True
    assert record["forward_passes"] == {"naive": n, "cached": n}
    assert record["rows"] == {"naive": sum(range(p, p + n)), "cached": p + n - 1}
    shape = TinyLlama()
    per_token = 2 * shape.num_layers * shape.num_kv_heads * shape.head_dim * 2
    assert record["kv"]["bytes_per_token"] == per_token
    assert record["kv"]["bytes"] == per_token * (p + n - 1)
    assert record["kv"]["value_bytes"] == 2
    assert (
        explain("the", "--max-tokens", 2, "--kv", "f32", "--json").json["kv"]["bytes_per_token"]
        == 2 * per_token
    )
    assert [row["tokens"] for row in record["by_length"]] == [8, 16, 20]
    assert len(record["naive_s"]) == len(record["cached_s"]) == n
    last = record["by_length"][-1]
    assert last["ratio"] == pytest.approx(sum(record["naive_s"]) / sum(record["cached_s"]))


def test_text_says_it_in_lines_of_eighty_columns(explain: Command) -> None:
    outcome = explain("the cat is", "--max-tokens", 20)
    assert (outcome.status, outcome.err) == (0, "")
    assert max(map(len, outcome.out.splitlines())) <= 80
    for words in ("forward passes: 20 without, 20 with", "same tokens: yes", "cache: 2 (K and V) x 2 layers"):
        assert words in outcome.out
    assert [line.split()[0] for line in outcome.out.splitlines()[3:6]] == ["8", "16", "20"]
    assert "milliseconds for each token: # without, o with cache" in outcome.out


def test_ratio_grows_with_the_text(tokenglass_: Command, tmp_path: Path) -> None:
    path = write_tiny_llama(tmp_path / "wide.gguf", shape=TinyLlama(hidden=256, num_heads=16, ffn=512))
    rows = tokenglass_("explain-cache", "-m", path, "the", "--max-tokens", 256, "--threads", 1, "--json").json
    ratios = {row["tokens"]: row["ratio"] for row in rows["by_length"]}
    assert ratios[256] > 1.5 * ratios[16]


@pytest.mark.parametrize("num_tokens", [1, 2])
def test_few_tokens_work_too(explain: Command, num_tokens: int) -> None:
    assert "same tokens: yes" in explain("the", "--max-tokens", num_tokens).out


def measured(*seconds: float) -> Measured:
    return Measured(seconds=list(seconds))


def test_tenfold_is_the_length_from_which_it_stays() -> None:
    fast = measured(1, 1, 1, 1)
    assert tenfold_from(measured(5, 15, 16, 30), fast) == 2
    assert tenfold_from(measured(20, 1, 1, 30), fast) == 4
    assert tenfold_from(measured(10, 10, 10, 10), fast) == 1
    assert tenfold_from(measured(1, 2, 3, 4), fast) is None


def test_lengths_double_and_end_with_the_last() -> None:
    assert lengths(100) == [8, 16, 32, 64, 100]
    assert lengths(128) == [8, 16, 32, 64, 128]
    assert lengths(3) == [3]


@pytest.mark.parametrize("num_tokens", [1, 2, 59, 60, 61, 1000])
def test_plot_has_both_marks_and_fits(num_tokens: int) -> None:
    naive, cached = [10.0 + i for i in range(num_tokens)], [1.0] * num_tokens
    caption, *rows, _axis, _ends = text_plot(naive, cached, caption="caption").splitlines()
    assert caption == "caption"
    assert len(rows) == HEIGHT
    assert "#" in rows[0]
    assert all(len(row) <= WIDTH + 10 for row in rows)
    assert "".join(rows).count("#") == min(WIDTH, num_tokens)
    assert "o" in "".join(rows[-2:])


def test_svg_is_xml_with_two_lines_and_nothing_from_elsewhere(explain: Command, tmp_path: Path) -> None:
    path = tmp_path / "plot.svg"
    outcome = explain("the", "--max-tokens", 9, "--svg", path)
    assert f"the plot is in {path}" in outcome.err
    root = ET.parse(path).getroot()
    lines = root.findall(".//{*}polyline")
    assert [len(line.attrib["points"].split()) for line in lines] == [9, 9]
    assert "href" not in path.read_text(encoding="utf-8")
    hostile = svg_plot([1.0], [1.0], title="<script>&", naive="<a>", cached="b", axis="c")
    assert ET.fromstring(hostile).findtext("{*}title") == "<script>&"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("the", "--max-tokens", "0"), "max_tokens must be a whole number from 1"),
        (("the", "--max-tokens", "600"), "max_tokens of 600 and the 2 of the prompt are more than"),
        (("a b " * 400,), "are more than the context window's 512"),
        (("",), "prompt is empty"),
        (("the", "--max-tokens", "1", "--threads", "0"), "num_threads must be"),
        (("the", "--max_tokens", "1"), "there is no option --max_tokens. Did you mean --max-tokens?"),
    ],
)
def test_mistake_is_one_line_and_status_2(explain: Command, arguments: tuple[str, ...], words: str) -> None:
    outcome = explain(*arguments)
    assert outcome.status == 2
    assert words in outcome.error


@pytest.mark.parametrize("place", ["none/plot.svg", "", "\0"])
def test_svg_that_cannot_be_written_is_refused_before_anything_is_measured(
    explain: Command, tmp_path: Path, place: str
) -> None:
    outcome = explain("the", "--max-tokens", 1, "--svg", tmp_path / place)
    assert (outcome.status, outcome.out) == (1, "")
    assert "cannot write" in outcome.error


def test_a_refused_run_leaves_an_earlier_svg_as_it_was(explain: Command, tmp_path: Path) -> None:
    path = tmp_path / "plot.svg"
    path.write_text("<svg/>")
    assert explain("the", "--max-tokens", 100_000, "--svg", path).status == 2
    assert path.read_text() == "<svg/>"


def test_prompt_comes_through_a_pipe(tiny_model_path: Path) -> None:
    arguments = ("explain-cache", "-m", tiny_model_path, "--max-tokens", 2, "--json")
    outcome = finish(child(*arguments, stdin=-1), b"the cat\n")
    assert outcome.status == 0
    assert outcome.json["same_ids"] is True


@pytest.mark.real_models
def test_cache_is_many_times_faster_on_a_real_model(tokenglass_: Command, real_model_path: Path) -> None:
    outcome = tokenglass_(
        "explain-cache", "-m", real_model_path, "Once upon a time", "--max-tokens", 48, "--json"
    )
    assert outcome.json["same_ids"] is True
    assert outcome.json["by_length"][-1]["ratio"] > 3


def test_the_cache_of_transformers_is_not_ours_to_explain(
    tokenglass_: Command, tiny_model_path: Path
) -> None:
    outcome = tokenglass_("explain-cache", "-m", tiny_model_path, "--engine", "transformers", "the")
    assert outcome.error == "--engine must be tokenglass here: it is our own cache that is explained"
