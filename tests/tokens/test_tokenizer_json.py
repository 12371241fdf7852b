"""tokenizer.json files of every kind, made here from a little text, against the library that reads them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors, trainers

from tests.tokens.corpus import lines
from tokenglass.errors import ModelFileError, ParameterError
from tokenglass.tokens import Tokenizer, TokenKind

CONTROL, USER = "<|im_end|>", "<tool_call>"
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def byte_level() -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    return trained(tokenizer, trainers.BpeTrainer(vocab_size=700, initial_alphabet=alphabet))


def metaspace(scheme: str) -> Callable[[], tokenizers.Tokenizer]:
    def make() -> tokenizers.Tokenizer:
        tokenizer = tokenizers.Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
        steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
        strip = [] if scheme == "never" else [decoders.Strip(" ", 1, 0)]
        tokenizer.decoder = decoders.Sequence([*steps, *strip])
        trained(tokenizer, trainers.BpeTrainer(vocab_size=900, special_tokens=["<unk>", *BYTES]))
        spec = json.loads(tokenizer.to_str())  # the bytes are tokens, but no text spells them
        spec["added_tokens"] = [token for token in spec["added_tokens"] if token["content"] not in BYTES]
        return tokenizers.Tokenizer.from_str(json.dumps(spec))

    return make


def legacy_llama() -> tokenizers.Tokenizer:
    tokenizer = metaspace("never")()
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.pre_tokenizer = None
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(steps)
    return tokenizer


def unigram() -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=900, unk_token="<unk>", special_tokens=["<unk>"])
    return trained(tokenizer, trainer)


def wordpiece() -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return trained(tokenizer, trainers.WordPieceTrainer(vocab_size=900, special_tokens=["[UNK]"]))


def word_level() -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return trained(tokenizer, trainers.WordLevelTrainer(vocab_size=900, special_tokens=["[UNK]"]))


def word_end() -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(models.BPE(unk_token="[UNK]", end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.decoder = decoders.BPEDecoder("</w>")
    trainer = trainers.BpeTrainer(vocab_size=900, special_tokens=["[UNK]"], end_of_word_suffix="</w>")
    return trained(tokenizer, trainer)


def trained(tokenizer: tokenizers.Tokenizer, trainer: Any) -> tokenizers.Tokenizer:
    tokenizer.train_from_iterator(lines(300, 5), trainer)
    tokenizer.add_special_tokens([CONTROL, AddedToken("<mask>", lstrip=True), AddedToken("<e>", rstrip=True)])
    tokenizer.add_tokens([AddedToken(USER, normalized=False)])
    return tokenizer


KINDS: dict[str, Callable[[], tokenizers.Tokenizer]] = {
    "byte level": byte_level,
    "metaspace always": metaspace("always"),
    "metaspace first": metaspace("first"),
    "metaspace never": metaspace("never"),
    "legacy llama": legacy_llama,
    "unigram": unigram,
    "wordpiece": wordpiece,
    "word level": word_level,
    "word end": word_end,
}
APART = ("wordpiece", "word level", "word end")  # the library writes a space between any two words


@pytest.fixture(scope="module", params=list(KINDS))
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, tokenizers.Tokenizer, Tokenizer]:
    original = KINDS[request.param]()
    path = tmp_path_factory.mktemp("t") / "tokenizer.json"
    original.save(str(path))
    return request.param, original, Tokenizer.from_path(path)


def check(pair: tuple[str, tokenizers.Tokenizer, Tokenizer], text: str) -> None:
    name, original, ours = pair
    ids = original.encode(text, add_special_tokens=False).ids
    assert ours.encode(text, control=True) == ids
    plain = ours.encode(text)
    assert not any(ours.vocabulary.is_control(i) for i in plain)
    if name not in APART:
        assert ours.decode(plain) == original.decode(plain, skip_special_tokens=False)


def test_ids_equal_the_librarys(pair: tuple[str, tokenizers.Tokenizer, Tokenizer]) -> None:
    for line in lines(300, 6):
        check(pair, line)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [CONTROL, USER, "<mask>", "<e>", " ", "  ", "\n", "a", "the", "你好", "é", "<unk>", "[UNK]"]
        )
        | st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
        max_size=12,
    ).map("".join)
)
def test_ids_equal_the_librarys_for_any_text(
    pair: tuple[str, tokenizers.Tokenizer, Tokenizer], text: str
) -> None:
    check(pair, text)


def saved(folder: Path, original: tokenizers.Tokenizer, **files: Any) -> Path:
    original.save(str(folder / "tokenizer.json"))
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def test_config_json_names_the_end_where_no_generation_config_does(tmp_path: Path) -> None:
    folder = saved(tmp_path, byte_level(), config={"eos_token_id": [3, 50256]})
    vocabulary = Tokenizer.from_path(folder).vocabulary
    by_name = byte_level().token_to_id(CONTROL)
    assert vocabulary.end_ids == {3, by_name}
    note = f"the end token 50256 is not in the vocabulary of {vocabulary.num_tokens} tokens: it is ignored"
    assert vocabulary.notes == (note,)
    (folder / "generation_config.json").write_text('{"eos_token_id": 5}')
    assert Tokenizer.from_path(folder).vocabulary.end_ids == {5, by_name}


def test_a_folder_says_what_tokens_are_for(tmp_path: Path) -> None:
    config = {
        "bos_token": {"content": "<mask>"},
        "eos_token": CONTROL,
        "add_bos_token": True,
        "chat_template": [{"name": "default", "template": "{{ messages[0].content }}"}],
    }
    original = byte_level()
    folder = saved(tmp_path, original, tokenizer_config=config, generation_config={"eos_token_id": [3, 5]})
    tokenizer = Tokenizer.from_path(folder)
    vocabulary = tokenizer.vocabulary
    assert vocabulary.bos_id == original.token_to_id("<mask>")
    assert vocabulary.end_ids == {3, 5, original.token_to_id(CONTROL)}
    assert tokenizer.encode("a")[0] == vocabulary.bos_id
    assert (
        tokenizer.decode(tokenizer.encode_chat([{"role": "user", "content": f"hi{CONTROL}"}]))
        == f"hi{CONTROL}"
    )
    assert vocabulary.kind(vocabulary.user_defined[USER]) is TokenKind.USER_DEFINED
    tokenizer.chat.close()


def test_bos_is_what_the_file_puts_before_a_text(tmp_path: Path) -> None:
    original = byte_level()
    bos = original.token_to_id("<mask>")
    original.post_processor = processors.TemplateProcessing(
        single="<mask> $A", special_tokens=[("<mask>", bos)]
    )
    tokenizer = Tokenizer.from_path(saved(tmp_path, original))
    assert tokenizer.encode("a") == original.encode("a").ids


def test_a_berts_brackets_around_a_text_are_not_its_bos(tmp_path: Path) -> None:
    original = wordpiece()
    mark = original.token_to_id("<mask>")
    original.post_processor = processors.TemplateProcessing(
        single="<mask> $A <mask>", special_tokens=[("<mask>", mark)]
    )
    assert mark not in Tokenizer.from_path(saved(tmp_path, original)).encode("a")


def test_a_files_own_truncation_is_ignored(tmp_path: Path) -> None:
    original = byte_level()
    original.enable_truncation(2)
    assert len(Tokenizer.from_path(saved(tmp_path, original)).encode("a b c d e f")) > 2


def test_rows_of_the_head_without_a_token_are_unused(tmp_path: Path) -> None:
    folder = saved(tmp_path, byte_level())
    num = Tokenizer.from_path(folder).vocabulary.num_tokens
    vocabulary = Tokenizer.from_path(folder, vocab_size=num + 2).vocabulary
    assert (vocabulary.num_tokens, vocabulary.kind(num + 1)) == (num + 2, TokenKind.UNUSED)
    with pytest.raises(ParameterError, match="vocab_size is 3"):
        Tokenizer.from_path(folder, vocab_size=3)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "not valid JSON"),
        ("[]", "must be a JSON object"),
        ("{", "not valid JSON"),
        ("{}", "model: is missing"),
        ('{"model": {"vocab": 3}}', "model.vocab"),
        ('{"model": {"vocab": {}}}', "model.vocab: is empty"),
        ('{"model": {"vocab": {"a": -1}}}', "model.vocab"),
        ('{"model": {"vocab": {"a": 4000000000}}}', "only 1 tokens"),
        ('{"model": {"vocab": {"\\ud800": 0}}}', "not UTF-8"),
        ('{"model": {"vocab": [3]}}', "model.vocab"),
        ('{"model": {"vocab": {"a": 0}}, "added_tokens": [3]}', "added_tokens"),
        ('{"model": {"vocab": {"a": 0}}, "added_tokens": [{"id": 1}]}', "added_tokens"),
    ],
)
def test_a_broken_file_is_refused_by_field(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(content)
    with pytest.raises(ModelFileError, match=problem):
        Tokenizer.from_path(path)


def test_what_the_library_refuses_is_refused_when_a_text_comes(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text('{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["b c"]}}')
    with pytest.raises(ModelFileError, match="the package tokenizers refuses it"):
        Tokenizer.from_path(path).encode("a")


def test_a_folder_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="the folder has none of tokenizer"):
        Tokenizer.from_path(tmp_path)
