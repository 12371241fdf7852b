"""The loop with a scripted model (text, ends, limits) and with the tiny model (nothing changes an answer).

Cases B01, B08, B10, B12, B13, B24; more of the last two in `test_parameters.py`.
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.engine.doubles import ScriptedModel, answer, scripted_engine
from tokenglass.engine import Engine, Request, load
from tokenglass.engine.listen import events
from tokenglass.errors import ContextFullError, ModelOutputError, ParameterError
from tokenglass.sampling import Sampling


def byte_ids(engine: Engine, data: bytes) -> list[int]:
    """One token for each byte."""
    vocabulary = engine.tokenizer.vocabulary
    single = {vocabulary.token_bytes(i): i for i in range(vocabulary.num_tokens)}
    return [single[bytes([byte])] for byte in data]


def run(path: Path, script: bytes, **options: object) -> tuple[list[str], str | None]:
    engine = scripted_engine(path, [0])
    assert isinstance(engine.model, ScriptedModel)
    engine.model.script = byte_ids(engine, script)
    options.setdefault("max_tokens", len(script))
    return answer(engine, Request(prompt_ids=[5], **options))  # type: ignore[arg-type]


def test_a_character_of_several_tokens_comes_whole(tiny_model_path: Path) -> None:
    assert run(tiny_model_path, "a😊b".encode()) == (["a", "", "", "", "😊", "b"], "length")


def test_a_torn_character_at_the_end_is_shown_once(tiny_model_path: Path) -> None:
    texts, reason = run(tiny_model_path, "a😊".encode()[:-1])
    assert ("".join(texts), reason) == ("a\ufffd", "length")


def test_a_stop_string_over_several_tokens_ends_before_it(tiny_model_path: Path) -> None:
    assert run(tiny_model_path, b"x O P Q y", stop=(" O P Q",))[1] == "stop"
    assert "".join(run(tiny_model_path, b"x O P Q y", stop=(" O P Q",))[0]) == "x"


def test_text_held_for_a_stop_string_is_released_at_the_end(tiny_model_path: Path) -> None:
    texts, reason = run(tiny_model_path, b"ab<STA", stop=("<START>",))
    assert ("".join(texts), reason) == ("ab<STA", "length")


@pytest.mark.parametrize(
    ("script", "stop", "text", "reason"),
    [
        (b"x O P Q y", ("O P Q",), "x ", "stop"),  # B08
        (b"well?\nno", ("\n",), "well?", "stop"),  # B10
        (b"ENTER END", ("END",), "ENTER ", "stop"),
        (b"ENTER EN", ("END",), "ENTER EN", "length"),
        (b"a<START>b", ("<START>",), "a", "stop"),  # B12
        (b"<<START>", ("<START>",), "<", "stop"),
        (b"a<STAR", ("<START>",), "a<STAR", "length"),
        ("a😊b😊".encode(), ("😊b",), "a", "stop"),
    ],
)
@pytest.mark.parametrize("trace_top", [None, 3])
def test_nothing_of_a_stop_string_is_sent_and_nothing_else_is_lost(
    tiny_model_path: Path,
    script: bytes,
    stop: tuple[str, ...],
    text: str,
    reason: str,
    trace_top: int | None,
) -> None:
    pieces, ended = run(tiny_model_path, script, stop=stop, trace_top=trace_top)
    assert ("".join(pieces), ended) == (text, reason)
    for end in range(len(pieces)):
        assert text.startswith("".join(pieces[:end]))


@pytest.mark.parametrize("text", ["😀", "한", "天空"])
def test_bytes_of_the_reasons_join_to_the_text(tiny_model_path: Path, text: str) -> None:
    """B02 and GLASS.md D1: the real bytes of each token, not those of a replacement character."""
    engine = scripted_engine(tiny_model_path, [0])
    assert isinstance(engine.model, ScriptedModel)
    engine.model.script = byte_ids(engine, text.encode())
    request = Request(prompt_ids=[5], max_tokens=len(text.encode()), trace_top=1)
    told = list(events(engine, request, engine.stream(request)))
    assert [event.token_bytes for event in told] == [bytes([byte]) for byte in text.encode()]
    assert [event.top_bytes[0] for event in told] == [event.token_bytes for event in told]
    assert "".join(event.text for event in told) == text


def test_an_end_token_ends_without_text(tiny_model_path: Path) -> None:
    engine = scripted_engine(tiny_model_path, [0])
    end = min(engine.tokenizer.vocabulary.end_ids)
    assert isinstance(engine.model, ScriptedModel)
    engine.model.script = [*byte_ids(engine, b"hi"), end]
    request = Request(prompt_ids=[5], max_tokens=10)
    assert answer(engine, request) == (["h", "i", ""], "stop")
    texts, reason = answer(engine, Request(prompt_ids=[5], max_tokens=5, ignore_eos=True))
    assert (len(texts), reason) == (5, "length")


@pytest.mark.parametrize(("min_tokens", "made"), [(0, 2), (1, 2), (2, 3), (4, 5), (5, 5)])
@pytest.mark.parametrize("trace_top", [None, 3])
def test_before_min_tokens_no_end_token_is_chosen(
    tiny_model_path: Path, min_tokens: int, made: int, trace_top: int | None
) -> None:
    engine = scripted_engine(tiny_model_path, [0])
    ends = sorted(engine.tokenizer.vocabulary.end_ids)
    assert isinstance(engine.model, ScriptedModel)
    engine.model.script = [70, *(ends * 4)[:4]]
    request = Request(prompt_ids=[5], max_tokens=5, min_tokens=min_tokens, trace_top=trace_top)
    pieces = list(engine.stream(request))
    ids = [token for piece in pieces for token in piece.token_ids]
    assert len(ids) == made
    assert not {*ends} & {*ids[:min_tokens]}
    assert pieces[-1].finish_reason == ("length" if min_tokens == 5 else "stop")


def test_before_min_tokens_a_stop_string_is_text(tiny_model_path: Path) -> None:
    engine = scripted_engine(tiny_model_path, [0])
    assert isinstance(engine.model, ScriptedModel)
    engine.model.script = byte_ids(engine, b"a.b.c.")
    for min_tokens, text in ((0, "a"), (1, "a"), (2, "a.b"), (6, "a.b.c.")):
        request = Request(prompt_ids=[5], max_tokens=6, min_tokens=min_tokens, stop=(".",))
        assert "".join(answer(engine, request)[0]) == text


def test_no_tokens_asked_none_made(tiny_model_path: Path) -> None:
    engine = scripted_engine(tiny_model_path, [5])
    assert answer(engine, Request(prompt_ids=[5], max_tokens=0)) == ([""], "length")
    assert isinstance(engine.model, ScriptedModel)
    assert engine.model.batches == []


def test_generation_ends_at_the_window(tiny_model_path: Path) -> None:
    engine = scripted_engine(tiny_model_path, [5], num_prompt=100)
    sequence = engine.submit(Request(prompt_ids=[5] * 100))
    assert [p.finish_reason for p in engine.follow(sequence)][-1] == "length"
    assert len(sequence.ids) == engine.context_length == 128


@pytest.mark.parametrize("num_prompt", [128, 129, 5000])
def test_a_prompt_that_fills_the_window_is_refused_with_both_numbers(
    tiny_model_path: Path, num_prompt: int
) -> None:
    engine = scripted_engine(tiny_model_path, [5])
    with pytest.raises(ContextFullError) as caught:
        engine.submit(Request(prompt_ids=[5] * num_prompt))
    assert str(num_prompt) in str(caught.value)
    assert "128" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"prompt_ids": []}, "prompt"),
        ({"prompt_ids": [1], "max_tokens": -1}, "max_tokens"),
        ({"prompt_ids": [1], "max_tokens": 1.5}, "max_tokens"),
        ({"prompt_ids": [1], "stop": ("",)}, "stop"),
        ({"prompt_ids": [1], "stop": "END"}, "stop"),
        ({"prompt_ids": [1], "stop": (1,)}, "stop"),
        ({"prompt_ids": [1.5]}, "prompt_ids"),
        ({"prompt_ids": "hi"}, "prompt_ids"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_by_name(options: dict[str, object], name: str) -> None:
    with pytest.raises(ParameterError) as caught:
        Request(**options)  # type: ignore[arg-type]
    assert caught.value.name == name


@pytest.mark.parametrize("token", [-1, 300, 1 << 40])
def test_an_id_that_is_no_token_is_refused_and_the_engine_lives(tiny_model_path: Path, token: int) -> None:
    engine = load(tiny_model_path, num_threads=1)
    with pytest.raises(ParameterError, match="prompt_ids"):
        engine.submit(Request(prompt_ids=[5, token]))
    assert len(list(engine.stream(Request(prompt_ids=[5], max_tokens=3, ignore_eos=True)))) == 3


def test_closing_a_stream_gives_its_pages_back(tiny_model_path: Path) -> None:
    engine = scripted_engine(tiny_model_path, [5])
    stream = engine.stream(Request(prompt_ids=[5]))
    next(stream)
    assert engine.scheduler.pool.num_free < 8
    stream.close()
    assert engine.scheduler.pool.num_free == 8
    engine.scheduler.pool.check([])


def test_closing_a_stream_that_nobody_read_drops_its_request(tiny_model_path: Path) -> None:
    engine = scripted_engine(tiny_model_path, [5])
    engine.stream(Request(prompt_ids=[5])).close()
    assert not engine.scheduler.waiting
    assert len(list(engine.stream(Request(prompt_ids=[5], max_tokens=2)))) == 2
    assert not engine.scheduler.running


def test_a_request_keeps_its_own_copy_of_the_ids() -> None:
    ids = [5, 6]
    request = Request(prompt_ids=ids)
    ids.clear()
    assert list(request.prompt_ids) == [5, 6]
    assert Request(prompt_ids=np.array([5, 6])).prompt_ids == request.prompt_ids  # type: ignore[arg-type]


def requests(rng: random.Random, num: int) -> list[Request]:
    return [
        Request(
            prompt_ids=[rng.randrange(3, 300) for _ in range(rng.choice([1, 2, 15, 16, 17, 60, 130]))],
            sampling=Sampling(temperature=rng.choice([0.0, 0.8]), top_p=0.9, seed=rng.randrange(1000)),
            max_tokens=rng.randint(1, 24),
            ignore_eos=True,
        )
        for _ in range(num)
    ]


def outputs(engine: Engine, batch: list[Request]) -> list[list[int]]:
    """Submits all at once, then reads them in order: they run side by side."""
    sequences = [engine.submit(request) for request in batch]
    for sequence in sequences:
        list(engine.follow(sequence))
    engine.scheduler.pool.check([])
    return [sequence.output_ids for sequence in sequences]


@pytest.mark.parametrize("max_rows", [7, 64, 512])
def test_neighbours_and_chunks_change_no_answer(tiny_model_path: Path, max_rows: int) -> None:
    batch = requests(random.Random(max_rows), 12)
    alone = [outputs(load(tiny_model_path, num_threads=1), [request])[0] for request in batch]
    together = outputs(load(tiny_model_path, num_threads=2, max_rows=max_rows), batch)
    assert together == alone


def test_streams_read_in_turns_give_what_they_give_alone(tiny_model_path: Path) -> None:
    engine = load(tiny_model_path, num_threads=1)
    batch = requests(random.Random(0), 3)
    alone = [outputs(engine, [request])[0] for request in batch]
    streams = [engine.stream(request) for request in batch]
    got: list[list[int]] = [[], [], []]
    while streams_left := [i for i, s in enumerate(streams) if s is not None]:
        for i in streams_left:
            piece = next(streams[i], None)
            if piece is None:
                streams[i] = None  # type: ignore[call-overload]
            else:
                got[i].extend(piece.token_ids)
    assert got == alone


def test_timings_add_up(tiny_model_path: Path) -> None:
    engine = load(tiny_model_path, num_threads=1, max_rows=64)
    sequence = engine.submit(Request(prompt_ids=[7] * 130, max_tokens=5, ignore_eos=True))
    list(engine.follow(sequence))
    timings = sequence.timings
    assert (timings.prompt_tokens, timings.output_tokens) == (130, 5)
    assert timings.forward_passes == 3 + 4  # 64 + 64 + 2 prompt rows, then one pass for each further token
    assert timings.submitted_s < timings.first_token_s < timings.finished_s


def test_a_row_without_numbers_ends_its_own_request_only(tiny_model_path: Path) -> None:
    engine = load(tiny_model_path, num_threads=1)
    good = Request(prompt_ids=[5, 6], max_tokens=6, ignore_eos=True)
    expected = [piece.token_ids for piece in engine.stream(good)]
    banned = Sampling(logit_bias=dict.fromkeys(range(300), -100.0))
    bad_stream = engine.stream(Request(prompt_ids=[5, 6], sampling=banned, max_tokens=6))
    good_stream = engine.stream(good)
    first = next(good_stream)
    with pytest.raises(ModelOutputError):
        list(bad_stream)
    assert [first.token_ids, *(piece.token_ids for piece in good_stream)] == expected
    engine.scheduler.pool.check([])


def test_a_bias_on_an_id_that_is_no_token_is_refused_at_once(tiny_model_path: Path) -> None:
    engine = load(tiny_model_path, num_threads=1)
    with pytest.raises(ParameterError, match="logit_bias"):
        engine.submit(Request(prompt_ids=[5], sampling=Sampling(logit_bias={300: 1.0})))


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_without_the_cache_everything_is_computed_again_and_nothing_changes(
    tiny_model_path: Path, temperature: float
) -> None:
    engine = load(tiny_model_path, num_threads=1, max_rows=16)
    cached = Request(
        prompt_ids=[7, 80, 9],
        sampling=Sampling(temperature=temperature, seed=1),
        max_tokens=20,
        ignore_eos=True,
    )
    naive = replace(cached, use_cache=False)
    pieces = [list(engine.stream(request)) for request in (cached, naive)]
    assert pieces[0] == pieces[1]
    passes = [answer[-1].timings.forward_passes for answer in pieces]
    assert passes == [20, 20 + 6]  # the last six read 17 ids and more: two steps of 16 rows
    engine.scheduler.pool.check([])
