"""The engine in a process of its own: the same answers, for any number of tasks, and an end for everybody."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.engine.doubles import GATED
from tokenglass.engine import Engine, Piece, Request, Timings, load, worker_process
from tokenglass.engine.aio import MAX_PROMPT_TOKENS, AsyncEngine
from tokenglass.engine.async_stream import AsyncStream
from tokenglass.errors import (
    ContextFullError,
    EngineDiedError,
    ModelFileError,
    ModelOutputError,
    ParameterError,
    UsageError,
)
from tokenglass.sampling import Sampling

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a socket pair is handed to another process")

T = TypeVar("T")
ONE_THREAD = {"num_threads": 1}


class Gate:
    """Lets the steps of a gated worker through, one by one."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.end = os.open(path, os.O_RDWR)  # does not wait for the other side

    def open(self, letters: bytes) -> None:
        os.write(self.end, letters)


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate(tmp_path / "gate")
    monkeypatch.setenv("GATE", str(tmp_path / "gate"))
    monkeypatch.setattr(worker_process, "_PROGRAM", GATED)
    yield gate
    os.close(gate.end)


class Loop:
    """An event loop, and an engine on it that a whole module shares."""

    def __init__(self, runner: asyncio.Runner, engine: AsyncEngine) -> None:
        self.runner, self.engine = runner, engine

    def run(self, test: Coroutine[Any, Any, T]) -> T:
        """The test's result; nothing of it is left in the engine afterwards."""

        async def checked() -> T:
            result = await test
            load = (await self.engine.ping()).load
            assert (load.running, load.waiting, load.pages_free) == (0, 0, load.num_pages)
            return result

        return self.runner.run(checked())


@pytest.fixture(scope="module")
def shared(tiny_model_path: Path) -> Iterator[Loop]:
    with asyncio.Runner() as runner:
        engine = AsyncEngine.load(tiny_model_path, **ONE_THREAD)
        runner.run(engine.start())
        yield Loop(runner, engine)
        runner.run(engine.close())


@pytest.fixture(scope="module")
def alone(tiny_model_path: Path) -> Engine:
    return load(tiny_model_path, num_threads=1)


def requests(seed: int, num: int) -> list[Request]:
    rng = random.Random(seed)
    return [
        Request(
            prompt_ids=[rng.randrange(3, 300) for _ in range(rng.choice([1, 2, 17, 60]))],
            sampling=Sampling(temperature=rng.choice([0.0, 0.8]), top_p=0.9, seed=rng.randrange(1000)),
            max_tokens=rng.randint(0, 24),
            stop=("e",) * rng.randint(0, 1),
            trace_top=rng.choice([None, 2]),
        )
        for _ in range(num)
    ]


async def read(stream: AsyncIterator[Piece]) -> list[Piece]:
    return [piece async for piece in stream]


def said(pieces: list[Piece]) -> tuple[str, list[int], str | None, Timings]:
    """Text, ids, end and counts of an answer, without its times."""
    ids = [token_id for piece in pieces for token_id in piece.token_ids]
    counts = replace(pieces[-1].timings, submitted_s=0.0, first_token_s=0.0, finished_s=0.0)
    return "".join(piece.text for piece in pieces), ids, pieces[-1].finish_reason, counts


def is_over(pid: int) -> bool:
    """Whether the process ends within half a minute; it need not be our child."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], 30)[0])
    finally:
        os.close(descriptor)


def pid_of(engine: AsyncEngine) -> int:
    assert engine._process is not None
    return engine._process.pid


# The same answers


def test_an_answer_is_that_of_the_engine_in_this_process(shared: Loop, alone: Engine) -> None:
    for request in requests(1, 12):
        expected = list(alone.stream(request))
        got = shared.run(read(shared.engine.stream(request)))
        assert said(got) == said(expected)
        if request.trace_top is not None:
            assert [piece.decision for piece in got] == [piece.decision for piece in expected]
        assert got[-1].timings.submitted_s <= got[-1].timings.first_token_s <= got[-1].at_s


def test_many_callers_at_once_get_what_each_gets_alone(shared: Loop, alone: Engine) -> None:
    many = requests(2, 60)

    async def together() -> list[list[Piece]]:
        return await asyncio.gather(*(read(shared.engine.stream(request)) for request in many))

    got = shared.run(together())
    assert [said(pieces) for pieces in got] == [said(list(alone.stream(request))) for request in many]


def test_a_thousand_requests_at_once(shared: Loop, alone: Engine) -> None:
    request = Request(prompt_ids=[5, 6], max_tokens=2, ignore_eos=True)

    async def thousand() -> list[list[Piece]]:
        streams = [shared.engine.stream(request) for _ in range(1000)]
        return await asyncio.gather(*map(read, streams))

    expected = said(list(alone.stream(request)))
    assert all(said(pieces) == expected for pieces in shared.run(thousand()))


def test_text_and_chats_become_ids_here(shared: Loop, alone: Engine) -> None:
    ours, theirs = shared.engine.tokenizer, alone.tokenizer
    assert ours.encode("the thing 你好") == theirs.encode("the thing 你好")
    messages = [{"role": "user", "content": "hi"}]
    assert ours.encode_chat(messages) == theirs.encode_chat(messages)
    assert ours.vocabulary.end_ids == theirs.vocabulary.end_ids
    assert shared.engine.context_length == alone.context_length
    assert shared.engine.notes == alone.model.notes


def test_a_slow_reader_gets_joined_pieces_and_holds_nobody_up(shared: Loop, alone: Engine) -> None:
    slow = Request(prompt_ids=[7, 8], max_tokens=200, ignore_eos=True)
    quick = replace(slow, prompt_ids=[9])

    async def both() -> tuple[list[Piece], list[Piece]]:
        unread = shared.engine.stream(slow)
        done = await read(shared.engine.stream(quick))
        await read(shared.engine.stream(quick))
        return await read(unread), done

    late, done = shared.run(both())
    assert len(late) < 200
    assert said(late) == said(list(alone.stream(slow)))
    assert said(done) == said(list(alone.stream(quick)))


def test_reasons_are_not_joined(shared: Loop) -> None:
    request = Request(prompt_ids=[7], max_tokens=50, ignore_eos=True, trace_top=1)

    async def late() -> list[Piece]:
        stream = shared.engine.stream(request)
        await read(shared.engine.stream(replace(request, trace_top=None)))
        return await read(stream)

    assert [len(piece.token_ids) for piece in shared.run(late())] == [1] * 50


# One request's fault is its own


def test_what_refuses_a_request_is_raised_as_in_this_process(shared: Loop, alone: Engine) -> None:
    bad: list[tuple[Request, type[Exception]]] = [
        (Request(prompt_ids=[5, 300]), ParameterError),
        (Request(prompt_ids=[5, -1]), ParameterError),
        (Request(prompt_ids=[5] * 512), ContextFullError),
        (Request(prompt_ids=[5] * 100_000), ContextFullError),
        (Request(prompt_ids=[5], sampling=Sampling(logit_bias={300: 1.0})), ParameterError),
    ]

    async def refused(request: Request) -> tuple[str, str]:
        with pytest.raises((ParameterError, ContextFullError)) as first:
            await shared.engine.submit(request)
        with pytest.raises(type(first.value)) as second:
            await read(shared.engine.stream(request))
        return str(first.value), str(second.value)

    for request, kind in bad:
        with pytest.raises(kind) as caught:
            alone.submit(request)
        assert shared.run(refused(request)) == (str(caught.value),) * 2


def test_a_request_too_large_to_send_is_refused_here(shared: Loop) -> None:
    async def oversized() -> None:
        with pytest.raises(ContextFullError, match=str(MAX_PROMPT_TOKENS + 1)):
            shared.engine.stream(Request(prompt_ids=[5] * (MAX_PROMPT_TOKENS + 1)))
        with pytest.raises(ParameterError, match="bytes"):
            shared.engine.stream(Request(prompt_ids=[5], stop=("x" * (1 << 24),)))

    shared.run(oversized())


def test_a_request_for_which_nothing_can_be_chosen_ends_alone(shared: Loop, alone: Engine) -> None:
    good = Request(prompt_ids=[5, 6], max_tokens=6, ignore_eos=True)
    banned = Sampling(logit_bias=dict.fromkeys(range(300), -100.0))
    bad = Request(prompt_ids=[5, 6], sampling=banned, max_tokens=6)

    async def both() -> list[Piece]:
        bad_stream, good_stream = shared.engine.stream(bad), shared.engine.stream(good)
        with pytest.raises(ModelOutputError, match="position 2"):
            await read(bad_stream)
        return await read(good_stream)

    assert said(shared.run(both())) == said(list(alone.stream(good)))


def test_an_answer_is_for_one_reader(shared: Loop) -> None:
    async def two() -> None:
        stream = shared.engine.stream(Request(prompt_ids=[5], max_tokens=100, ignore_eos=True))
        first = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="one task"):
            await anext(stream)
        await first
        await stream.aclose()
        assert await read(stream) == []

    shared.run(two())


# Cancelling


@asynccontextmanager
async def gated(path: Path) -> AsyncIterator[AsyncEngine]:
    """An engine that steps when the gate lets it; four requests run at once, and there are 8 pages."""
    async with AsyncEngine.load(path) as engine:
        yield engine


LONG = Request(prompt_ids=[5], max_tokens=26, ignore_eos=True)  # says a to z


@pytest.mark.parametrize("how", ["close", "task", "drop"])
@pytest.mark.parametrize("point", ["queued", "prefill", "decode"])
def test_a_request_cancelled_at_any_point_is_gone_with_the_next_step(
    tiny_model_path: Path, gate: Gate, point: str, how: str
) -> None:
    async def test() -> None:
        async with gated(tiny_model_path) as engine:
            neighbour = asyncio.create_task(read(engine.stream(LONG)))
            others = [engine.stream(LONG) for _ in range(3 if point == "queued" else 0)]
            stream: AsyncStream | None = engine.stream(replace(LONG, prompt_ids=[5] * 20, max_tokens=70))
            assert stream is not None
            await asyncio.sleep(0)  # the requests are sent; the worker waits at the gate
            if point != "prefill":
                gate.open(b"s")
                await (stream.accepted() if point == "queued" else anext(stream))
            if how == "close":
                await stream.aclose()
            elif how == "task":
                task = asyncio.create_task(anext(stream))
                await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            stream = None
            ping = asyncio.create_task(engine.ping())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            gate.open(b"s")  # at most the step that was under way when it was cancelled
            load = (await ping).load
            assert load.running + load.waiting == 1 + len(others)
            gate.open(b"s" * 60)
            text, _, reason, _ = said(await neighbour)
            assert (text, reason) == ("abcdefghijklmnopqrstuvwxyz", "length")
            for other in others:
                await other.aclose()
            load = (await engine.ping()).load
            assert (load.running, load.waiting, load.pages_free) == (0, 0, load.num_pages)

    asyncio.run(test())


def test_storms_of_cancellations_leave_nothing_and_change_no_neighbour(shared: Loop, alone: Engine) -> None:
    rng = random.Random(3)
    neighbour = Request(prompt_ids=[7, 8], max_tokens=300, ignore_eos=True)

    async def victim(request: Request) -> None:
        pieces = 0
        async with aclosing(shared.engine.stream(request)) as stream:
            async for _ in stream:
                pieces += 1
                if pieces == len(request.prompt_ids) % 5:
                    break

    async def storm() -> list[Piece]:
        going = asyncio.create_task(read(shared.engine.stream(neighbour)))
        for _ in range(10):
            tasks = [asyncio.create_task(victim(request)) for request in requests(rng.randrange(99), 30)]
            await asyncio.sleep(0)
            for task in rng.sample(tasks, 20):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return await going

    assert said(shared.run(storm())) == said(list(alone.stream(neighbour)))


def test_leaving_the_loop_drops_the_request(shared: Loop) -> None:
    async def leave() -> None:
        async for _ in shared.engine.stream(Request(prompt_ids=[5], max_tokens=400, ignore_eos=True)):
            break

    shared.run(leave())


# The end of the process


def test_everybody_is_told_when_the_process_is_killed(tiny_model_path: Path, gate: Gate) -> None:
    async def test() -> None:
        async with gated(tiny_model_path) as engine:
            streams = [engine.stream(LONG) for _ in range(20)]
            gate.open(b"s")
            first = await anext(streams[0])
            waiting: list[asyncio.Task[Any]] = [asyncio.create_task(read(stream)) for stream in streams]
            waiting.append(asyncio.create_task(engine.ping()))
            await asyncio.sleep(0)
            assert engine.is_alive
            os.kill(pid_of(engine), signal.SIGKILL)
            results = await asyncio.gather(*waiting, return_exceptions=True)
            assert first.text == "a"
            assert {type(result) for result in results} == {EngineDiedError}
            assert all("SIGKILL" in str(result) for result in results)
            for later in (engine.stream, engine.submit):
                with pytest.raises(EngineDiedError, match="SIGKILL"):
                    await later(LONG)  # type: ignore[misc]
            with pytest.raises(EngineDiedError, match="SIGKILL"):
                await engine.ping()
            assert not engine.is_alive
            assert not engine.health.is_alive

    asyncio.run(test())


def test_a_step_that_fails_ends_the_engine_with_its_words(
    tiny_model_path: Path, gate: Gate, capfd: pytest.CaptureFixture[str]
) -> None:
    async def test() -> None:
        async with gated(tiny_model_path) as engine:
            gate.open(b"ssx")
            with pytest.raises(EngineDiedError, match="ZeroDivisionError: the model divides by zero"):
                await read(engine.stream(LONG))

    asyncio.run(test())
    assert "Traceback" in capfd.readouterr().err  # where it was, for whoever mends it


def test_a_process_that_talks_nonsense_is_ended(tiny_model_path: Path, gate: Gate) -> None:
    async def test() -> None:
        async with gated(tiny_model_path) as engine:
            gate.open(b"sns")
            with pytest.raises(EngineDiedError, match="no message"):
                await read(engine.stream(LONG))

    asyncio.run(test())


def test_closing_waits_for_open_answers_if_it_is_told_to(tiny_model_path: Path, gate: Gate) -> None:
    async def test() -> None:
        async with gated(tiny_model_path) as engine:
            stream = engine.stream(LONG)
            closing = asyncio.create_task(engine.close(finish_s=None))
            await asyncio.sleep(0)
            with pytest.raises(EngineDiedError, match="closed"):
                engine.stream(LONG)
            os.kill(pid_of(engine), signal.SIGINT)  # a Ctrl-C that reaches it all the same
            gate.open(b"s" * 30)
            assert said(await read(stream))[0] == "abcdefghijklmnopqrstuvwxyz"
            await closing

    asyncio.run(test())


def test_closing_cuts_off_what_is_open_and_leaves_no_process(tiny_model_path: Path, gate: Gate) -> None:
    async def test() -> int:
        async with gated(tiny_model_path) as engine:
            stream, pid = engine.stream(LONG), pid_of(engine)
            reading = asyncio.create_task(read(stream))
            await asyncio.sleep(0)
        with pytest.raises(EngineDiedError, match="closed"):
            await reading
        with pytest.raises(EngineDiedError, match="closed"):
            engine.stream(LONG)
        await engine.close()
        return pid

    pid = asyncio.run(test())
    with pytest.raises(ProcessLookupError):  # no zombie either
        os.kill(pid, 0)


def test_engines_leave_no_descriptor_and_no_child(tiny_model_path: Path) -> None:
    async def once() -> int:
        async with AsyncEngine.load(tiny_model_path, **ONE_THREAD) as engine:
            await read(engine.stream(Request(prompt_ids=[5], max_tokens=2)))
            return pid_of(engine)

    def descriptors() -> list[str]:
        gc.collect()
        return sorted(os.listdir("/proc/self/fd")) if sys.platform == "linux" else []

    asyncio.run(once())  # what is loaded once and stays
    before = descriptors()
    pids = [asyncio.run(once()) for _ in range(2)]
    assert descriptors() == before
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_health_knows_what_runs(tiny_model_path: Path, gate: Gate) -> None:
    async def test() -> None:
        async with gated(tiny_model_path) as engine:
            before = engine.health
            assert (before.is_alive, before.stalled_s, before.step_age_s) == (True, 0.0, None)
            streams = [engine.stream(replace(LONG, max_tokens=10)) for _ in range(6)]
            gate.open(b"s")
            await anext(streams[0])
            health = engine.health
            assert (health.load.running, health.load.waiting, health.load.num_steps) == (4, 2, 1)
            assert health.load.pages_free < health.load.num_pages
            assert health.step_age_s is not None
            assert health.stalled_s > 0  # nobody opens the gate
            for stream in streams:
                await stream.aclose()
            assert engine.health.stalled_s == 0
            assert engine.health.uptime_s > before.uptime_s

    asyncio.run(test())


# Starting


def started(path: Path | str, **settings: Any) -> None:
    async def start() -> None:
        async with AsyncEngine.load(path, **settings):
            raise AssertionError("it was to fail")

    asyncio.run(start())


def test_a_broken_file_is_refused_as_in_this_process(tiny_model_path: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(tiny_model_path.read_bytes()[:5000])
    for path in (cut, tmp_path / "none.gguf", tmp_path):
        with pytest.raises(ModelFileError) as expected:
            load(path)
        with pytest.raises(ModelFileError) as caught:
            started(path)
        assert vars(caught.value) == vars(expected.value)
        assert str(caught.value) == str(expected.value)


def test_a_setting_out_of_range_is_refused_as_in_this_process(tiny_model_path: Path) -> None:
    with pytest.raises(ParameterError) as expected:
        load(tiny_model_path, context_length=10**9)
    with pytest.raises(ParameterError) as caught:
        started(tiny_model_path, context_length=10**9)
    assert str(caught.value) == str(expected.value)


def test_a_setting_that_is_none_is_refused_before_anything_starts(tiny_model_path: Path) -> None:
    with pytest.raises(TypeError, match="num_thread"):
        AsyncEngine.load(tiny_model_path, num_thread=1)


def test_a_process_that_ends_while_it_loads(tiny_model_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_process, "_PROGRAM", "import os; os._exit(7)")
    with pytest.raises(EngineDiedError, match="exit status 7"):
        started(tiny_model_path)


def test_a_start_that_is_cancelled_leaves_no_process(
    tiny_model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_process, "_PROGRAM", "import signal; signal.pause()")

    async def test() -> int:
        engine = AsyncEngine.load(tiny_model_path)
        starting = asyncio.create_task(engine.start())
        while engine._transport is None:
            await asyncio.sleep(0)
        pid = pid_of(engine)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        return pid

    pid = asyncio.run(test())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_an_engine_that_was_not_started_says_so(tiny_model_path: Path) -> None:
    engine = AsyncEngine.load(tiny_model_path)
    assert not engine.is_alive
    with pytest.raises(UsageError, match="async with"):
        engine.stream(LONG)


# The parent's end

PARENT = """
import asyncio, os, sys
from tokenglass.engine import Request, worker_process
from tokenglass.engine.aio import AsyncEngine

worker_process._PROGRAM = GATED

async def main():
    async with AsyncEngine.load(sys.argv[1]) as engine:
        stream = engine.stream(Request(prompt_ids=[5], max_tokens=90, ignore_eos=True))
        await stream.accepted()
        if "fork" in sys.argv:  # a child of ours keeps our end of the socket open
            if not os.fork():
                os.read(0, 1)
                os._exit(0)
        print(engine._process.pid, flush=True)
        async for piece in stream: ...

asyncio.run(main())
"""


@pytest.fixture
def parent(
    tiny_model_path: Path, gate: Gate, request: pytest.FixtureRequest
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Another process with an engine in the middle of a step; and the pid of its worker."""
    program = PARENT.replace("GATED", repr(GATED))
    paths = [str(Path(__file__).parents[2]), *sys.path]
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(tiny_model_path), *getattr(request, "param", [])],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    assert process.stdout is not None
    yield process, int(process.stdout.readline())
    process.kill()
    process.communicate()


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for a process that is not its child")
@pytest.mark.parametrize("parent", [[], ["fork"]], indirect=True, ids=["alone", "with a child"])
def test_the_process_ends_with_its_parent_even_in_a_step(parent: tuple[subprocess.Popen[str], int]) -> None:
    process, worker = parent
    process.kill()
    process.wait()
    assert is_over(worker)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for a process that is not its child")
def test_ctrl_c_ends_both_without_a_word_from_the_worker(parent: tuple[subprocess.Popen[str], int]) -> None:
    process, worker = parent
    os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode in (130, -signal.SIGINT)
    assert is_over(worker)
    assert "worker.py" not in told
