"""The facade gives what the engine gives, and refuses by name what cannot be."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import tokenglass as tg
from tokenglass.engine import Request
from tokenglass.errors import ContextFullError, ParameterError

PROMPT = "the cat in the"


def test_generate_gives_the_loops_tokens(model: tg.LanguageModel) -> None:
    ids = model.engine.tokenizer.encode(PROMPT)
    request = Request(prompt_ids=ids, max_tokens=8, sampling=tg.Sampling(temperature=0.8, seed=3))
    expected = [i for piece in model.engine.stream(request) for i in piece.token_ids]
    generation = model.generate(PROMPT, max_tokens=8, temperature=0.8, seed=3)
    assert list(generation.ids) == expected
    assert generation.prompt_ids == tuple(ids)
    assert (generation.usage.prompt_tokens, generation.usage.completion_tokens) == (len(ids), len(expected))
    assert generation.finish_reason in ("stop", "length")
    assert str(generation) == generation.text


def test_text_ids_and_tokens_are_the_same_prompt(model: tg.LanguageModel) -> None:
    tokens = model.tokenize(PROMPT)
    answers = {model.generate(prompt, max_tokens=5).ids for prompt in (PROMPT, tokens, list(tokens.ids))}
    assert len(answers) == 1


def test_messages_go_through_the_chat_template(model: tg.LanguageModel) -> None:
    messages = [{"role": "user", "content": "hi <|im_end|>"}]
    expected = model.engine.tokenizer.encode_chat(messages)
    assert model.generate(messages, max_tokens=1).prompt_ids == tuple(expected)
    assert expected.count(2) == 1  # the user's <|im_end|> is plain text


def test_stream_joins_to_the_answer_and_can_be_left(model: tg.LanguageModel) -> None:
    whole = model.generate(PROMPT, max_tokens=8)
    assert "".join(piece.text for piece in model.stream(PROMPT, max_tokens=8)) == whole.text
    stream = model.stream(PROMPT)
    next(stream)
    stream.close()
    model.engine.scheduler.pool.check([])


def test_a_stop_string_may_be_given_alone(model: tg.LanguageModel) -> None:
    text = model.generate(PROMPT, max_tokens=12).text
    stop = text[4:6]
    assert model.generate(PROMPT, max_tokens=12, stop=stop).text == text[: text.index(stop)]


def test_without_the_cache_the_answer_is_the_same(model: tg.LanguageModel) -> None:
    with_cache = model.generate(PROMPT, max_tokens=6)
    without = model.generate(PROMPT, max_tokens=6, use_cache=False)
    assert with_cache.ids == without.ids


def test_score_is_the_log_softmax_of_every_row(model: tg.LanguageModel) -> None:
    text = PROMPT * 12  # more rows than one step scores
    score = model.score(text)
    ids = model.tokenize(text).ids
    assert len(ids) > 32
    assert len(score.logprobs) == len(ids)
    assert np.isnan(score.logprobs[0])
    for i in (1, 31, 32, 33, len(ids) - 1):
        assert score.logprobs[i] == pytest.approx(model.next(ids[:i]).logprobs[ids[i]], abs=1e-12)
    assert score.perplexity == pytest.approx(np.exp(-np.nanmean(score.logprobs)))
    model.engine.scheduler.pool.check([])


def test_ids_and_tokens_are_scored_like_their_text(model: tg.LanguageModel) -> None:
    tokens = model.tokenize(PROMPT)
    whole = model.score(PROMPT)
    for same in (tokens, list(tokens.ids)):
        score = model.score(same)
        np.testing.assert_array_equal(score.logprobs, whole.logprobs)
        assert score.tokens == tokens


def test_a_continuation_is_scored_behind_its_prompt(model: tg.LanguageModel) -> None:
    whole, part = (
        model.score("the water flows"),
        model.score("the water", continuation=" flows", top_logprobs=3),
    )
    start = len(model.tokenize("the water").ids)
    assert part.tokens.ids == whole.tokens.ids
    np.testing.assert_array_equal(part.logprobs[start:], whole.logprobs[start:])
    assert np.isnan(part.logprobs[:start]).all()
    assert [token.bytes for token in part.content] == [token.bytes for token in part.tokens[start:]]
    assert part.content[0].top_logprobs[0].logprob >= part.content[0].logprob
    assert part.total_logprob == pytest.approx(whole.logprobs[start:].sum())
    with pytest.raises(ParameterError, match="continuation"):
        model.score("the", continuation="")
    with pytest.raises(ParameterError, match="must be a text"):
        model.score([5, 6], continuation="x")


def test_perplexity_of_a_short_text_is_its_scores(model: tg.LanguageModel) -> None:
    found = model.perplexity(PROMPT)
    assert found.perplexity == pytest.approx(model.score(PROMPT).perplexity)


def test_a_prompt_too_long_is_cut_only_where_that_is_asked_and_it_is_counted(model: tg.LanguageModel) -> None:
    ids = [(7 * i + 3) % 300 for i in range(600)]
    with pytest.raises(ContextFullError, match="has 600 tokens and the context window holds 512"):
        model.generate(ids)
    oldest = model.generate(ids, truncate="oldest", max_tokens=12)
    assert (oldest.prompt_ids, oldest.truncated_tokens) == (tuple(ids[100:]), 100)
    middle = model.generate(ids, truncate="middle", reserve=112, max_tokens=None, ignore_eos=True)
    assert (middle.prompt_ids, middle.truncated_tokens) == (tuple(ids[:200] + ids[-200:]), 200)
    assert (len(middle.ids), middle.finish_reason) == (112, "length")
    assert model.generate(ids[:5], truncate="oldest", max_tokens=1).truncated_tokens == 0
    messages = [{"role": "system", "content": "be brief"}]
    messages += [{"role": "user", "content": f"{i} " + "water " * 20} for i in range(9)]
    chat = model.generate(messages, truncate="oldest", max_tokens=4)
    assert "be brief" in model.detokenize(chat.prompt_ids)
    assert chat.truncated_tokens > 0
    with pytest.raises(ParameterError, match="needs truncate"):
        model.generate(ids, reserve=5)
    with pytest.raises(ParameterError, match="oldest or middle"):
        model.generate(ids, truncate="newest")  # type: ignore[arg-type]


def test_no_tokens_asked_is_an_empty_answer(model: tg.LanguageModel) -> None:
    generation = model.generate(PROMPT, max_tokens=0)
    assert (generation.text, generation.ids, generation.finish_reason) == ("", (), "length")


def test_a_stream_too_long_is_refused_when_it_begins(model: tg.LanguageModel) -> None:
    stream = model.stream([5] * 512)
    with pytest.raises(ContextFullError):
        next(stream)


def test_a_step_takes_what_argmax_gives(model: tg.LanguageModel) -> None:
    step = model.step(PROMPT)
    step.take(step.next().logits.argmax())
    assert tuple(step.taken_ids) == model.generate(PROMPT, max_tokens=1).ids
    with pytest.raises(ParameterError, match="top"):
        step.next(top=-1)


def test_next_is_what_greedy_takes(model: tg.LanguageModel) -> None:
    best = model.next(PROMPT).top(1)[0]
    assert (best.rank, best.id) == (1, model.generate(PROMPT, max_tokens=1).ids[0])
    model.engine.scheduler.pool.check([])


def test_steps_drawn_by_hand_are_the_streams(model: tg.LanguageModel) -> None:
    generation = model.generate(PROMPT, max_tokens=6, temperature=1.0, top_p=0.9, seed=5)
    step = model.step(PROMPT, temperature=1.0, top_p=0.9, seed=5)
    for token_id in generation.ids:
        assert step.draw().token_id == token_id
        step.take(token_id)
    assert step.taken_ids == list(generation.ids)


def test_a_stream_runs_beside_open_steps_which_go_on_afterwards(model: tg.LanguageModel) -> None:
    step = model.step(PROMPT)
    before = step.next().logits
    assert len(list(model.stream(PROMPT, max_tokens=None, logit_bias={2: -100}))) > 400  # the whole window
    step.take(5)
    step.truncate(step.num_prompt)
    np.testing.assert_array_equal(step.next().logits, before)


def test_a_stream_opened_before_a_step_took_pages_still_runs(model: tg.LanguageModel) -> None:
    stream = model.stream(PROMPT, max_tokens=None)
    step = model.step(PROMPT)
    step.next()
    assert next(stream).token_ids
    stream.close()


def test_a_forgotten_step_gives_its_pages_back(model: tg.LanguageModel) -> None:
    step = model.step(PROMPT)
    step.next()
    del step
    gc.collect()
    model.engine.scheduler.pool.check([])


@pytest.mark.parametrize(
    ("prompt", "options", "name"),
    [
        ("", {}, "prompt"),
        ([], {}, "prompt"),
        (["a"], {}, "prompt"),
        (b"ab", {}, "prompt"),
        (None, {}, "prompt"),
        ({"role": "user"}, {}, "prompt"),
        ([True], {}, "prompt"),
        ([1, {"role": "user"}], {}, "prompt"),
        ("a", {"temprature": 1.0}, "temprature"),
        ("a", {"top_p": 1.5}, "top_p"),
        ("a", {"sampling": tg.Sampling(), "top_p": 0.5}, "sampling"),
        ("a", {"stop": ""}, "stop"),
        ("a", {"max_tokens": -1}, "max_tokens"),
    ],
)
def test_what_cannot_be_is_refused_by_name(
    model: tg.LanguageModel, prompt: Any, options: dict[str, Any], name: str
) -> None:
    with pytest.raises(ParameterError) as caught:
        model.generate(prompt, **options)
    assert caught.value.name == name


def test_a_misspelt_setting_brings_its_neighbour(model: tg.LanguageModel) -> None:
    options: dict[str, Any] = {"temprature": 1.0}
    with pytest.raises(ParameterError, match="Did you mean temperature"):
        model.generate("a", **options)


def test_refused_questions_leave_nothing_behind(model: tg.LanguageModel) -> None:
    for ask in (lambda: model.score("a"), lambda: model.next([999]), lambda: model.step([])):
        with pytest.raises(ParameterError):
            ask()
    with pytest.raises(ContextFullError):
        model.score([5] * 513)
    model.engine.scheduler.pool.check([])
