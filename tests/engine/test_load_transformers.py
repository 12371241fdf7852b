"""Transformers behind our loop: the tokens of `model.generate`, and all the rest as with our own models."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.foreign_models import KINDS, reference, save_foreign
from tokenglass import api
from tokenglass.engine import Engine, Request, load
from tokenglass.engine.conversation import Conversation
from tokenglass.engine.stepping import Stepper
from tokenglass.errors import ModelFileError, ParameterError, UsageError
from tokenglass.sampling import Sampling

pytestmark = pytest.mark.oracle

PROMPT = [5, 60, 70, 80, 9]
Opened = tuple[Engine, Any, Path]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Opened]:
    """The engine, Transformers' own model, and the folder of a kind; each is made once."""
    made: dict[str, Opened] = {}

    def open_(kind: str) -> Opened:
        if kind not in made:
            folder = save_foreign(kind, tmp_path_factory.mktemp(kind))
            made[kind] = load(folder, num_threads=1, engine="transformers"), reference(folder), folder
        return made[kind]

    return open_


def ids_of(engine: Engine, **request: Any) -> list[int]:
    request = {"prompt_ids": PROMPT, "max_tokens": 50, "ignore_eos": True, **request}
    return [token for piece in engine.stream(Request(**request)) for token in piece.token_ids]


def generated(model: Any, prompt: list[int] = PROMPT, num: int = 50, **more: Any) -> list[int]:
    import torch

    ids = model.generate(torch.tensor([prompt]), max_new_tokens=num, do_sample=False, **more)[0].tolist()
    return list(ids[len(prompt) :])


def logits_after(model: Any, ids: list[int]) -> Any:
    """Transformers' own, of the whole text in one pass."""
    import torch

    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].float().numpy()


def assert_near(ours: Any, theirs: Any) -> None:
    assert np.abs(ours - theirs).max() <= 1e-5 * np.abs(theirs).max()


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_tokens_are_those_of_generate(opened: Callable[[str], Opened], kind: str) -> None:
    engine, model, _ = opened(kind)
    expected = generated(model)
    assert len(set(expected)) > 1 or kind in ("opt", "gemma2")
    assert ids_of(engine) == expected
    assert ids_of(engine, use_cache=False) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_every_branch_has_the_logits_of_the_whole_text(opened: Callable[[str], Opened], kind: str) -> None:
    """Back behind the sliding window (16), to the prompt, and forth; recurrent states cannot go back."""
    engine, model, _ = opened(kind)
    with Stepper(engine, PROMPT) as stepper:
        for _ in range(30):
            stepper.take(stepper.draw().token_id)
            stepper.scores()
        for length, token in ((34, 7), (30, 8), (12, 9), (13, 10), (5, 11), (6, 12)):
            stepper.branch(length, token)
            assert_near(stepper.scores().numpy()[0], logits_after(model, stepper.ids)[-1])
            stepper.take(13)
            assert_near(stepper.scores().numpy()[0], logits_after(model, stepper.ids)[-1])


@pytest.mark.parametrize("kind", ["opt", "mamba", "gemma2"])
def test_the_next_turn_of_a_chat_is_that_of_a_fresh_one(opened: Callable[[str], Opened], kind: str) -> None:
    engine, _, _ = opened(kind)
    talk = Conversation(engine)
    first = [{"role": "user", "content": "Paris is the capital of France"}]
    answer = "".join(piece.text for piece in talk.answer(first, max_tokens=12))
    second = [*first, {"role": "assistant", "content": answer}, {"role": "user", "content": "1 + 1"}]
    ids = [token for piece in talk.answer(second, max_tokens=12) for token in piece.token_ids]
    fresh = Request(prompt_ids=engine.tokenizer.encode_chat(second), max_tokens=12)
    assert ids == [token for piece in engine.stream(fresh) for token in piece.token_ids]
    talk.close()


def test_both_engines_give_the_same_ids(opened: Callable[[str], Opened]) -> None:
    engine, _, folder = opened("llama")
    own = load(folder, activations="f32", kv="f32")
    assert ids_of(own) == ids_of(engine)
    drawn = Sampling(temperature=0.9, top_p=0.9, seed=3)
    assert ids_of(own, sampling=drawn) == ids_of(engine, sampling=drawn)
    assert own.tokenizer.vocabulary.num_tokens == engine.tokenizer.vocabulary.num_tokens


def test_a_gguf_gives_the_same_ids_in_both_engines(tiny_model_path: Path) -> None:
    engine = load(tiny_model_path, engine="transformers")
    assert ids_of(load(tiny_model_path, activations="f32", kv="f32")) == ids_of(engine)
    assert engine.tokenizer.encode("the water") == load(tiny_model_path).tokenizer.encode("the water")


def test_several_texts_at_once_are_each_as_alone(opened: Callable[[str], Opened]) -> None:
    engine, _, _ = opened("mixtral")
    prompts = [PROMPT, [1, 2, 3], [200] * 20]
    alone = [ids_of(engine, prompt_ids=prompt) for prompt in prompts]
    requests = [Request(prompt_ids=prompt, max_tokens=50, ignore_eos=True) for prompt in prompts]
    together: list[list[int]] = [[], [], []]
    for pieces in zip_longest(*map(engine.stream, requests)):
        for ids, piece in zip(together, pieces, strict=True):
            ids += piece.token_ids if piece else ()
    assert together == alone


def test_a_seed_gives_the_same_tokens_at_every_level_of_trace(opened: Callable[[str], Opened]) -> None:
    engine, _, _ = opened("gpt_neox")
    drawn = [
        ids_of(engine, sampling=Sampling(temperature=1.2, top_p=0.95, seed=seed), trace_top=top)
        for seed, top in ((1, None), (1, 0), (1, 20), (2, None))
    ]
    assert drawn[0] == drawn[1] == drawn[2] != drawn[3]


def test_the_end_in_the_files_ends_as_in_generate(opened: Callable[[str], Opened], tmp_path: Path) -> None:
    folder = save_foreign("gpt_neox", tmp_path)
    end = generated(opened("gpt_neox")[1])[7]
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [end, 99999]}))
    engine = load(folder, engine="transformers")
    expected = generated(reference(folder), eos_token_id=end, pad_token_id=0)
    assert len(expected) <= 8
    assert ids_of(engine, ignore_eos=False) == expected
    longer = ids_of(engine, ignore_eos=False, min_tokens=len(expected) + 1)
    assert len(longer) > len(expected)
    assert longer[: len(expected)] != expected  # the end was not drawn
    assert "the end token 99999 is not in the vocabulary of 313 tokens: it is ignored" in engine.model.notes


def test_stop_strings_and_whole_characters(opened: Callable[[str], Opened]) -> None:
    engine, _, _ = opened("gpt_neox")
    pieces = list(engine.stream(Request(prompt_ids=PROMPT, max_tokens=30, ignore_eos=True)))
    text = "".join(piece.text for piece in pieces)
    assert text == engine.tokenizer.decode([i for piece in pieces for i in piece.token_ids], after=None)
    stop = text[5:7]
    stopped = list(engine.stream(Request(prompt_ids=PROMPT, max_tokens=30, ignore_eos=True, stop=(stop,))))
    assert "".join(piece.text for piece in stopped) == text[: text.index(stop)]
    assert stopped[-1].finish_reason == "stop"


@pytest.mark.parametrize("kind", ["opt", "mamba"])
def test_next_and_score_are_the_softmax_of_their_logits(opened: Callable[[str], Opened], kind: str) -> None:
    import torch

    engine, model, _ = opened(kind)
    asked = api.LanguageModel(engine, kind)
    rows = torch.log_softmax(torch.from_numpy(logits_after(model, PROMPT)), -1).numpy()
    assert np.allclose(asked.next(PROMPT).probabilities, np.exp(rows[-1]), atol=1e-5)
    expected = [rows[i, PROMPT[i + 1]] for i in range(len(PROMPT) - 1)]
    assert np.allclose(asked.score(PROMPT).logprobs[1:], expected, atol=1e-4)


def test_a_text_longer_than_what_scores_are_made_for_at_once(opened: Callable[[str], Opened]) -> None:
    engine, model, _ = opened("jamba")
    ids = (PROMPT * 20)[:77]  # 32 rows at a time: a recurrent state takes none of them but from the beginning
    rows = logits_after(model, ids)
    targets = rows[np.arange(76), ids[1:]] - np.log(np.exp(rows[:-1]).sum(axis=1))
    assert np.allclose(api.LanguageModel(engine, "").score(ids).logprobs[1:], targets, atol=1e-4)


@pytest.mark.parametrize("kind", ["gpt_neox", "mamba"])
def test_a_pass_that_was_interrupted_costs_nothing_but_time(
    opened: Callable[[str], Opened], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, model, _ = opened(kind)
    inner: Any = engine.model
    layer = inner.model.base_model.layers[1]
    with Stepper(engine, PROMPT) as stepper:
        stepper.scores()
        stepper.take(7)
        with monkeypatch.context() as patch:
            patch.setattr(layer, "forward", interrupted)
            with pytest.raises(KeyboardInterrupt):
                stepper.scores()  # the first layer has cached the token, the second has not
        assert_near(stepper.scores().numpy()[0], logits_after(model, stepper.ids)[-1])


def interrupted(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def test_what_has_ended_is_forgotten(opened: Callable[[str], Opened]) -> None:
    engine, _, _ = opened("opt")
    stream = engine.stream(Request(prompt_ids=PROMPT, max_tokens=20))
    next(stream)
    assert isinstance(kept := texts(engine), list)
    assert len(kept) == 1
    assert engine.model.kv_bytes_per_token == 2 * 2 * 64 * 4  # k and v, layers, hidden, float32
    stream.close()
    assert texts(engine) == []


def texts(engine: Engine) -> list[Any]:
    inner: Any = engine.model
    return list(inner._texts.values())


def test_a_window_is_the_model_s_or_a_smaller_one(opened: Callable[[str], Opened]) -> None:
    engine, _, folder = opened("opt")
    assert engine.context_length == 256
    assert load(folder, engine="transformers", context_length=100).context_length == 100
    assert opened("mamba")[0].context_length == 1 << 20
    with pytest.raises(ParameterError, match="context_length"):
        load(folder, engine="transformers", context_length=257)


def test_types_and_devices(opened: Callable[[str], Opened]) -> None:
    import torch

    engine, _, folder = opened("opt")
    half = load(folder, engine="transformers", dtype="bf16")
    assert half.model.notes[0].endswith(" on cpu in bfloat16")
    assert engine.model.notes[0].startswith("OPTForCausalLM by Transformers ")
    assert generated(torch_model(half)) == ids_of(half)
    with pytest.raises(ParameterError, match="dtype must be one of f32, bf16, f16, not 'f8'"):
        load(folder, engine="transformers", dtype="f8")  # type: ignore[arg-type]
    absent = "mps" if torch.cuda.is_available() else "cuda"
    with pytest.raises(ParameterError, match=f"device '{absent}' is not there: torch .* sees cpu"):
        load(folder, engine="transformers", device=absent)


def torch_model(engine: Engine) -> Any:
    inner: Any = engine.model
    inner.model.generation_config.eos_token_id = None
    return inner.model


@pytest.mark.cuda
def test_a_gpu_gives_the_ids_of_generate_there(opened: Callable[[str], Opened]) -> None:
    import torch

    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    _, _, folder = opened("mixtral")
    engine = load(folder, engine="transformers", device="cuda")
    model = torch_model(engine)
    ids = model.generate(torch.tensor([PROMPT], device="cuda"), max_new_tokens=50, do_sample=False)[0]
    assert ids_of(engine) == ids.tolist()[len(PROMPT) :]


@pytest.mark.filterwarnings("ignore")
def test_models_that_are_not_causal_are_refused(opened: Callable[[str], Opened], tmp_path: Path) -> None:
    sizes: dict[str, Any] = {"d_model": 64, "n_layer": 2, "n_head": 4, "d_inner": 96}
    with pytest.raises(ModelFileError, match="scores depend on the tokens after them: no causal model"):
        load(save_foreign("xlnet", tmp_path / "xlnet", **sizes), engine="transformers")
    folder = save_foreign("opt", tmp_path / "opt")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "is_encoder_decoder": True}))
    with pytest.raises(ModelFileError, match="an encoder with a decoder"):
        load(folder, engine="transformers")
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))
    with pytest.raises(ModelFileError, match=r"tensor model\.decoder\.layers\.2\..* is missing, one of 16"):
        load(folder, engine="transformers")
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "no-such-model"}))
    with pytest.raises(ModelFileError, match=r"it cannot be loaded: ValueError: .*no-such-model"):
        load(folder, engine="transformers")


OWN_CODE = """
from pathlib import Path
from transformers import OPTConfig, OPTForCausalLM
Path(__MARKER__).touch()
class OwnConfig(OPTConfig):
    model_type = "own-opt"
class OwnModel(OPTForCausalLM):
    config_class = OwnConfig
"""


@pytest.fixture
def _modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Transformers copies code to before it runs it."""
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))


@pytest.mark.usefixtures("_modules")
def test_code_of_a_model_runs_only_when_it_is_trusted(
    opened: Callable[[str], Opened], tmp_path: Path
) -> None:
    folder, marker = save_foreign("opt", tmp_path / "own"), tmp_path / "it-ran"
    (folder / "own.py").write_text(OWN_CODE.replace("__MARKER__", repr(str(marker))))
    config = json.loads((folder / "config.json").read_text())
    names = {"AutoConfig": "own.OwnConfig", "AutoModelForCausalLM": "own.OwnModel"}
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "own-opt", "auto_map": names}))
    with pytest.raises(UsageError, match=r"own brings its own Python code \(own\.OwnModel\)"):
        load(folder, engine="transformers")
    assert not marker.exists()
    trusted = load(folder, engine="transformers", trust_remote_code=True)
    assert marker.exists()
    assert ids_of(trusted) == ids_of(opened("opt")[0])


def test_a_bare_vocabulary_is_used_as_the_class_in_the_folder_uses_it(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    folder = save_foreign("opt", tmp_path)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "capital", "##s", "北", "京"]
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"}))
    engine = load(folder, engine="transformers")
    assert "the tokenizer is made by Transformers (BertTokenizer)" in engine.model.notes
    ids = engine.tokenizer.encode("The capitals 北京")
    assert ids == AutoTokenizer.from_pretrained(folder).encode("The capitals 北京", add_special_tokens=False)
    assert engine.tokenizer.decode(ids) == "the capitals北京"


def test_a_tokenizer_that_is_plain_python_is_refused_not_misread(tmp_path: Path) -> None:
    folder = save_foreign("opt", tmp_path)
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.json").write_text(json.dumps({"<unk>": 0, "a@@": 1, "b": 2}))
    (folder / "merges.txt").write_text("#version: 0.2\na b</w>\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "CTRLTokenizer"}))
    with pytest.raises(ModelFileError, match=r"CTRLTokenizer cannot be used here without a tokenizer\.json"):
        load(folder, engine="transformers")
