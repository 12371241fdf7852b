"""The code of first tutorials beside ours: the same names, prompts and loops, from a hub on this machine.

`tests/support/tutorial_program.py` holds the blocks that use Transformers; it runs once, as a program. The
vocabularies are the real ones, out of packages (`tests/tokens/real_files.py`); weights are tiny and random.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tokenglass as tg
from tests.cli.conftest import SOURCE, Command, tokenglass_  # noqa: F401
from tests.hub.test_share import running
from tests.support import tutorial_models as models
from tests.support.tutorial import (
    BERT,
    CHINESE_GPT2,
    MESSAGES,
    NUM_NEW,
    PROMPTS,
    QWEN,
    TEMPERATURE,
    TEXTS,
    TOP_K,
    TOP_P,
)
from tokenglass.hub import pull, tokenizer_path
from tokenglass.hub.share import Share
from tokenglass.tokens import Tokenizer

pytestmark = pytest.mark.oracle
EXACT: Any = {"activations": "f32", "kv": "f32"}
GENERATORS = (QWEN, CHINESE_GPT2)
Found = dict[str, Any]


@pytest.fixture(scope="module")
def hub(tokenizer_packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a hub with the three models, in an environment that knows no other."""
    store = tmp_path_factory.mktemp("hub") / "models"
    vocabulary = models.real_bert_vocabulary(tokenizer_packages)
    models.write_qwen(store / "Qwen--Qwen2.5-0.5B-Instruct", models.qwen_tokenizer(tokenizer_packages))
    models.write_chinese_gpt2(store / "gpt2-chinese-cluecorpussmall", vocabulary)
    models.write_bert_base_chinese(store / "bert-base-chinese", vocabulary)
    with running(Share(store)) as share, pytest.MonkeyPatch.context() as patch:
        for name in ("TOKENGLASS_OFFLINE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_TOKEN"):
            patch.delenv(name, raising=False)
        patch.setenv("NO_PROXY", "127.0.0.1")
        patch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{share.port}")
        patch.setenv("TOKENGLASS_HOME", str(tmp_path_factory.mktemp("home")))
        yield f"http://127.0.0.1:{share.port}"


@pytest.fixture(scope="module")
def theirs(hub: str, tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What the blocks give with Transformers."""
    cache = str(tmp_path_factory.mktemp("hf"))
    root = str(Path(__file__).parents[2])
    environ = {
        **os.environ,
        "HF_HOME": cache,
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "PYTHONPATH": f"{SOURCE}:{root}",
    }
    program = [sys.executable, "-m", "tests.support.tutorial_program"]
    run = subprocess.run(program, env=environ, capture_output=True, text=True, timeout=280)
    assert run.returncode == 0, run.stderr[-3000:]
    found: Found = json.loads(run.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module", params=GENERATORS)
def model(request: pytest.FixtureRequest, hub: str) -> tg.LanguageModel:
    return tg.load(pull(request.param), **EXACT)


def block(theirs: Found, model: tg.LanguageModel) -> Found:
    found: Found = theirs[QWEN if model.vocabulary.num_tokens > 50_000 else CHINESE_GPT2]
    return found


# --- AutoTokenizer ---


@pytest.mark.parametrize("name", [QWEN, CHINESE_GPT2, BERT])
def test_ids_are_those_of_autotokenizer(theirs: Found, hub: str, name: str) -> None:
    if name == QWEN:
        pull(name)
    tokenizer = Tokenizer.from_path(tokenizer_path(name))
    for text, found in zip(TEXTS, theirs["tokens"][name], strict=True):
        ids = tokenizer.encode(text)
        assert ids == found["ids"]
        assert [tokenizer.vocabulary.token_text(i) for i in ids] == found["tokens"]


def test_their_berts_put_special_tokens_around_a_text_and_spaces_into_it(theirs: Found) -> None:
    """The traps as they are there; ours has neither."""
    for name in (CHINESE_GPT2, BERT):
        tokenizer = Tokenizer.from_path(tokenizer_path(name))
        for found in theirs["tokens"][name]:
            assert found["with_special"] == [101, *found["ids"], 102]
            ours = tokenizer.decode(found["ids"]).replace("[UNK]", "")  # to them an unknown word is special
            assert ours.replace(" ", "") == found["decoded"].replace(" ", "")
        first = theirs["tokens"][name][0]
        assert first["decoded"] == "今 天 天 气 真 好 ， 我 们 去 公 园 玩 。"
        assert tokenizer.decode(first["ids"]) == TEXTS[0]


# --- generate, and the loops by hand ---


def test_generate_gives_the_same_tokens(theirs: Found, model: tg.LanguageModel) -> None:
    found = block(theirs, model)
    assert found["generate"] == found["by_hand"]
    for prompt, expected in zip(PROMPTS, found["generate"], strict=True):
        answer = model.generate(prompt, max_tokens=NUM_NEW)
        assert list(answer.ids) == expected
        assert "".join(piece.text for piece in model.stream(prompt, max_tokens=NUM_NEW)) == answer.text
        whole = model.detokenize([*answer.prompt_ids, *answer.ids])
        assert whole == model.detokenize(answer.prompt_ids) + answer.text


def test_the_loop_by_hand_gives_the_same_tokens(theirs: Found, model: tg.LanguageModel) -> None:
    prompt, expected = PROMPTS[0], block(theirs, model)["by_hand"][0]
    ids = list(model.tokenize(prompt).ids)
    for _ in range(NUM_NEW):
        ids.append(int(model.next(ids).logits.argmax()))
    assert ids[-NUM_NEW:] == expected
    with model.step(prompt) as step:
        for _ in range(NUM_NEW):
            step.take(step.next().order[0])
        assert step.taken_ids == expected


def test_the_next_tokens_distribution_is_the_same(theirs: Found, model: tg.LanguageModel) -> None:
    for prompt, found in zip(PROMPTS, block(theirs, model)["next"], strict=True):
        best = model.next(prompt).top(5)
        assert [token.id for token in best] == found["best"][0]
        np.testing.assert_allclose([token.probability for token in best], found["best"][1], rtol=1e-3)
        with model.step(prompt, temperature=TEMPERATURE, top_k=TOP_K, seed=1) as step:
            decision = step.draw(trace_top=TOP_K).decision
        assert decision is not None
        kept = [c for c in decision.top if c.p > 0]
        assert [c.token_id for c in kept] == found["top_k"][0]
        np.testing.assert_allclose([c.p for c in kept], found["top_k"][1], rtol=1e-3)
        with model.step(prompt, temperature=1, top_p=TOP_P, seed=1) as step:
            decision = step.draw(trace_top=1).decision
        assert decision is not None
        assert abs(decision.stages[0].survivors - found["top_p"]) <= 2  # theirs are float32 sums


def test_a_chat_gives_the_same_prompt_and_answer(theirs: Found, hub: str) -> None:
    """`generate` takes the repetition penalty of generation_config.json even when it does not sample."""
    model, found = tg.load(pull(QWEN), **EXACT), theirs["chat"]
    assert model.engine.tokenizer.chat.render(MESSAGES).text == found["text"]
    answer = model.generate(MESSAGES, max_tokens=NUM_NEW, repetition_penalty=1.1)
    assert list(answer.prompt_ids) == found["ids"]
    assert list(answer.ids) == found["new"]
    assert answer.text == found["answer"]


# --- the command line, by the names a user types ---


@pytest.mark.parametrize("name", GENERATORS)
def test_run_gives_the_same_tokens(theirs: Found, hub: str, name: str, tokenglass_: Command) -> None:  # noqa: F811
    pull(name)
    exact = ("--activations", "f32", "--kv", "f32", "--raw", "--json")
    for prompt, tokens in zip(PROMPTS, theirs[name]["generate"], strict=True):
        outcome = tokenglass_("run", "-m", name, prompt, "--max-tokens", NUM_NEW, *exact)
        assert outcome.json["token_ids"] == tokens
    best = tokenglass_("next", "-m", name, PROMPTS[0], "--top", 5, *exact).json
    assert [token["token_id"] for token in best["candidates"]] == theirs[name]["next"][0]["best"][0]


@pytest.mark.parametrize("name", [CHINESE_GPT2, BERT])
def test_transformers_reads_the_folder_that_we_pulled(theirs: Found, hub: str, name: str) -> None:
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(pull(name))
    assert tokenizer.encode(TEXTS[0]) == theirs["tokens"][name][0]["with_special"]
