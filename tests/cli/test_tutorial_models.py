"""The tutorials' models by the names a user would type, from a hub on this machine: fetched, run, looked at.

The traps of the Chinese GPT-2 are here with a test for each; the same code blocks beside Transformers:
`tests/api/test_tutorial_code.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.hub.test_share import running
from tests.support.hf_folder import write_tiny_folder
from tests.support.tiny_llama import TinyLlama
from tests.support.tiny_models import write_tiny_model
from tests.support.tutorial_models import bert_vocabulary, write_bert_base_chinese, write_chinese_gpt2
from tokenglass.hub.share import Share

PROMPT = "今天天气很好"
EXACT = ("--activations", "f32", "--kv", "f32")


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Share]:
    """Serves the models under their repositories on the Hugging Face hub."""
    store = tmp_path_factory.mktemp("hub") / "models"
    store.mkdir()
    write_tiny_model(store / "qwen2.5-0.5b-instruct-q4_k_m.gguf", "qwen2")
    write_chinese_gpt2(store / "gpt2-chinese-cluecorpussmall")
    write_bert_base_chinese(store / "bert-base-chinese")
    with running(Share(store)) as share:
        yield share


@pytest.fixture
def tiny_repository(hub: Share) -> str:
    """A repository that no catalogue knows."""
    folder = hub.store / "Tiny--Qwen2.5-0.5B-Instruct"
    folder.mkdir(exist_ok=True)
    write_tiny_folder(folder, TinyLlama())
    return "Tiny/Qwen2.5-0.5B-Instruct"


@pytest.fixture(autouse=True)
def home(hub: Share, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty store, and that hub as the only one."""
    for name in ("TOKENGLASS_OFFLINE", "HF_HUB_OFFLINE", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{hub.port}")
    monkeypatch.setenv("TOKENGLASS_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def run(tokenglass_: Command) -> Command:
    return lambda *arguments: tokenglass_("run", "-m", "gpt2-chinese-cluecorpussmall", *EXACT, *arguments)


def test_the_chinese_gpt2_is_fetched_by_its_name_and_continues_a_text(run: Command, home: Path) -> None:
    answer = run(PROMPT, "--max-tokens", 12, "--json")
    assert (answer.status, answer.json["finish_reason"]) == (0, "length")
    assert len(answer.json["token_ids"]) == 12
    assert (home / "models" / "gpt2-chinese-cluecorpussmall" / "pytorch_model.bin").is_file()
    assert answer.err.splitlines()[-3:] == [
        "raw text, no chat template",
        "the end token 50256 is not in the vocabulary of 21128 tokens: it is ignored",
        "this model has no end token: the answer ends by --max-tokens or --stop",
    ]


def test_its_notes_are_said_in_chinese(run: Command) -> None:
    assert run(PROMPT, "--max-tokens", 1, "--lang", "zh").err.splitlines()[-4:-1] == [
        "原样文字，不用聊天模板",
        "结束词元 50256 不在词表里（共 21128 个词元），不予理会",
        "这个模型没有结束词元：答案由 --max-tokens 或 --stop 结束",
    ]


@pytest.mark.parametrize(
    "name", ["uer/gpt2-chinese-cluecorpussmall", "google-bert/bert-base-chinese", "bert-base-chinese"]
)
def test_the_names_of_the_hub_are_names_here(tokenglass_: Command, name: str, home: Path) -> None:
    """Of a tokenizer alone no weights are fetched."""
    assert tokenglass_("tokens", "-m", name, PROMPT, "--json").json["models"][0]["num_tokens"] == 6
    assert (home / "tokenizers" / name.split("/")[-1] / "vocab.txt").is_file()
    assert not (home / "models" / name.split("/")[-1]).exists()
    if "gpt2" in name:
        assert tokenglass_("run", "-m", name, PROMPT, "--max-tokens", 1).status == 0


def test_qwen_is_fetched_by_its_name_and_answers(tokenglass_: Command, home: Path) -> None:
    arguments = ("用一句话介绍北京。", "--max-tokens", 8, "--json")
    answer = tokenglass_("run", "-m", "qwen2.5-0.5b-instruct", *arguments)
    assert (home / "models" / "qwen2.5-0.5b-instruct-q4_k_m.gguf").is_file()
    assert answer.json["settings"]["chat"]
    assert answer.json["usage"]["completion_tokens"] == 8
    again = tokenglass_("run", "-m", "Qwen/Qwen2.5-0.5B-Instruct-GGUF", *arguments)
    assert again.json["text"] == answer.json["text"]


def test_a_whole_repository_is_pulled_listed_shown_run_and_removed(
    tokenglass_: Command, tiny_repository: str
) -> None:
    pulled = tokenglass_("models", "pull", tiny_repository)
    path = pulled.out.rstrip()
    assert path.endswith("Tiny--Qwen2.5-0.5B-Instruct")
    assert tokenglass_("models", "path", tiny_repository).out == pulled.out
    rows = tokenglass_("models", "list", "--json").json["models"]
    (row,) = [row for row in rows if row["path"] == path]
    assert (row["name"], row["architecture"], row["runnable"]) == (tiny_repository, "llama", True)
    assert tokenglass_("models", "show", tiny_repository, "--json").json["name"] == tiny_repository
    assert tokenglass_("run", "-m", tiny_repository, "hi", "--max-tokens", 2).status == 0
    assert tokenglass_("models", "rm", "--yes", tiny_repository).status == 0
    assert (
        f"tokenglass models pull {tiny_repository}" in tokenglass_("run", "-m", tiny_repository, "hi").error
    )


# --- trap 1: the tokenizer puts [CLS] before a prompt and [SEP], which ends a text, behind it ---


def test_a_raw_prompt_gets_no_special_tokens(run: Command, tokenglass_: Command) -> None:
    assert run(PROMPT, "--max-tokens", 1, "--json").json["usage"]["prompt_tokens"] == len(PROMPT)
    for model in ("gpt2-chinese-cluecorpussmall", "bert-base-chinese"):
        seen = tokenglass_("tokens", "-m", model, PROMPT, "--json").json["models"][0]
        assert [token["text"] for token in seen["tokens"]] == [*PROMPT], model
        assert (seen["num_tokens"], seen["num_tokens_raw"], seen["num_tokens_chat"]) == (6, 6, None)
        assert seen["context_length"] == (1024 if "gpt2" in model else 512)


# --- trap 2: no end token ---


def test_an_answer_can_be_ended_and_lengthened_all_the_same(run: Command) -> None:
    text = run(PROMPT, "--max-tokens", 12, "--json").json["text"]
    stop = text[5]
    for more, kept in (((), text[: text.index(stop)]), (("--min-tokens", 12), text)):
        assert run(PROMPT, "--max-tokens", 12, "--stop", stop, "--json", *more).json["text"] == kept
    assert run(PROMPT, "--max-tokens", 12, "--ignore-eos", "--json").json["text"] == text


def test_the_name_of_a_control_token_is_a_stop(run: Command) -> None:
    """What a tutorial does with `eos_token_id=tokenizer.sep_token_id`; 102 is [SEP], made the best token."""
    favoured = ("--logit-bias", f"{bert_vocabulary().index('[SEP]')}=100", "--max-tokens", 5, "--json")
    assert run(PROMPT, *favoured).json["token_ids"] == [102] * 5
    ended = run(PROMPT, *favoured, "--stop", "[SEP]").json
    assert (ended["token_ids"], ended["text"], ended["finish_reason"]) == ([102], "", "stop")
    later = run(PROMPT, *favoured, "--stop", "[SEP]", "--min-tokens", 2).json["token_ids"]
    assert (len(later), later[-1]) == (3, 102)
    assert 102 not in later[:2]


# --- trap 3: words without spaces ---


def test_text_is_joined_as_it_is_written_and_goes_on_from_the_prompt(
    run: Command, tokenglass_: Command
) -> None:
    ids = [bert_vocabulary().index(text) for text in ("world", "##s", "今", "天", "。")]
    for prompt, expected in (("hello", " world"), ("你好", "world")):
        bias = ("--logit-bias", f"{ids[0]}=100")
        assert run(prompt, "--max-tokens", 1, *bias).out == f"{expected}\n"
    assert run("hello", "--max-tokens", 1, "--logit-bias", f"{ids[1]}=100").out == "s\n"


def test_what_wordpiece_loses_is_said(run: Command, tokenglass_: Command) -> None:
    said = "WordPiece loses capitals, accents, spaces and unknown words ([UNK]); the model reads"
    assert said not in run(PROMPT, "--max-tokens", 1).err
    assert f'{said} "[UNK]今天next token"' in run("Hello 今天 next token", "--max-tokens", 1).err
    seen = tokenglass_("tokens", "-m", "bert-base-chinese", "Hello 今天 next token")
    assert f'bert-base-chinese: {said} "[UNK]今天next token"' in seen.err
    assert tokenglass_("tokens", "-m", "bert-base-chinese", "今天next token").err == ""
    chinese = tokenglass_("tokens", "-m", "bert-base-chinese", "Hello 今天", "--lang", "zh")
    assert '模型读到的是 "[UNK]今天"' in chinese.err


def test_one_gguf_file_of_it_gives_the_same_answer(run: Command, tokenglass_: Command, home: Path) -> None:
    prompt = (f"Hello{PROMPT}", "--max-tokens", 8, "--json")
    expected = run(*prompt).json
    folder, gguf = home / "models" / "gpt2-chinese-cluecorpussmall", home / "chinese.gguf"
    assert tokenglass_("convert", folder, gguf).status == 0
    answer = tokenglass_("run", "-m", gguf, *prompt, *EXACT).json
    assert (answer["token_ids"], answer["text"]) == (expected["token_ids"], expected["text"])
    assert tokenglass_("convert", folder, home / "q8.gguf", "--weights", "q8").status == 0
    assert tokenglass_("run", "-m", home / "q8.gguf", *prompt).status == 0


def test_the_encoder_is_a_tokenizer_only(tokenglass_: Command) -> None:
    refused = tokenglass_("run", "-m", "bert-base-chinese", PROMPT)
    assert "is an encoder: it scores no next token and cannot generate" in refused.error
