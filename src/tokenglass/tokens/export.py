"""The tokenizer in a GGUF file as the files of a Hugging Face folder: `gguf_keys.py` backwards.

    tokenizer.json · tokenizer_config.json · generation_config.json · chat_template.jinja

What cuts and merges is what `bpe_object.py` makes; control tokens, which are kept out of it there, are
special tokens here.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from tokenglass.errors import ModelFileError
from tokenglass.formats import ModelSource, StringArray
from tokenglass.tokens.bpe_object import byte_level_object, sentencepiece_object
from tokenglass.tokens.gguf import lowers_case, pre_tokenizer_of
from tokenglass.tokens.gguf_vocabulary import vocabulary_of
from tokenglass.tokens.tokenizer_json import Spec
from tokenglass.tokens.vocabulary import Style, TokenKind, Vocabulary
from tokenglass.tokens.word_marks import SPACE_MARK
from tokenglass.tokens.wordpiece import wordpiece_spec

_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


def tokenizer_files(model: ModelSource) -> dict[str, str]:
    """File names and what they hold. ModelFileError: a key is wrong, or the vocabulary is a unigram one."""
    vocabulary = vocabulary_of(model)
    ids = {"bos": vocabulary.bos_id, "eos": vocabulary.eos_id, "pad": vocabulary.pad_id}
    named = {**ids, "unk": vocabulary.unknown_id}
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "add_bos_token": vocabulary.add_bos,
        **{f"{name}_token": vocabulary.token_text(i) for name, i in named.items() if i is not None},
    }
    generation = {f"{name}_token_id": i for name, i in ids.items() if i is not None}
    if vocabulary.end_ids:
        generation["eos_token_id"] = sorted(vocabulary.end_ids)  # type: ignore[assignment]
    objects = {
        "tokenizer.json": _spec(model, vocabulary),
        "tokenizer_config.json": config,
        "generation_config.json": generation,
    }
    files = {name: json.dumps(value, ensure_ascii=False, indent=1) for name, value in objects.items()}
    template = model.get("tokenizer.chat_template", str, None)
    return files | ({"chat_template.jinja": template} if template else {})


def _spec(model: ModelSource, vocabulary: Vocabulary) -> Spec:
    """tokenizer.json, its special tokens among the others."""
    if model.get("tokenizer.ggml.model", str) == "t5":
        problem = "a unigram vocabulary cannot be written as tokenizer.json yet"
        raise ModelFileError(model.path, "tokenizer.ggml.model", problem)
    if vocabulary.style is Style.WORDPIECE:
        tokens = [raw.decode() for raw in vocabulary.tokens]
        return {"version": "1.0", **wordpiece_spec(tokens, lower_case=lowers_case(model, vocabulary))}
    if vocabulary.style is Style.BYTE_LEVEL:
        merges = model.get("tokenizer.ggml.merges", StringArray)
        built = byte_level_object(model.path, vocabulary, merges, pre_tokenizer_of(model))
    else:
        scores = model.get("tokenizer.ggml.scores", np.float32)
        built = sentencepiece_object(model.path, vocabulary, scores)
    spec: Spec = json.loads(built.to_str())
    spec["decoder"] = _BYTE_LEVEL if vocabulary.style is Style.BYTE_LEVEL else _pieces(vocabulary)
    unused = {
        f"[PAD{i}]" for i in np.flatnonzero(vocabulary.kinds == TokenKind.UNUSED).tolist()
    }  # what fills a vocabulary up to the rows of the head
    vocab = {text: i for text, i in spec["model"]["vocab"].items() if text not in unused}
    spec["model"]["vocab"] = vocab | dict(vocabulary.control)
    listed = {**vocabulary.user_defined, **vocabulary.control}
    spec["added_tokens"] = [
        _added(text, listed[text], is_special=text in vocabulary.control)
        for text in sorted(listed, key=lambda text: listed[text])
        if text
    ]
    if vocabulary.add_bos and vocabulary.bos_id is not None:
        spec["post_processor"] = _puts_first(vocabulary.token_text(vocabulary.bos_id), vocabulary.bos_id)
    return spec


def _pieces(vocabulary: Vocabulary) -> dict[str, Any]:
    """How pieces of SentencePiece become text."""
    steps: list[dict[str, Any]] = [
        {"type": "Replace", "pattern": {"String": SPACE_MARK}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    if vocabulary.add_space_prefix:
        steps.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    return {"type": "Sequence", "decoders": steps}


def _added(text: str, token_id: int, *, is_special: bool) -> dict[str, Any]:
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"id": token_id, "content": text, **plain, "special": is_special}


def _puts_first(text: str, token_id: int) -> dict[str, Any]:
    """A post-processor that begins every text with this token."""
    first, a = {"SpecialToken": {"id": text, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
    b = {"Sequence": {"id": "B", "type_id": 1}}
    return {
        "type": "TemplateProcessing",
        "single": [first, a],
        "pair": [first, a, b],
        "special_tokens": {text: {"id": text, "ids": [token_id], "tokens": [text]}},
    }
