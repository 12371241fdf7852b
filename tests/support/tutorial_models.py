"""The models of the tutorials in small: their own settings and kinds of files, with tiny random weights.

    gpt2-chinese-cluecorpussmall   config.json, vocab.txt of 21,128 tokens, pytorch_model.bin and nothing else
    bert-base-chinese              the same vocabulary, no weights
    Qwen2.5-0.5B-Instruct          config.json, tokenizer.json, model.safetensors in bfloat16

Written from facts, without torch. The vocabulary is made here (BERT's special tokens at their places, signs,
letters and Chinese characters in the order of Unicode) or given by whoever has the real one.
"""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.formats.test_torch_file import state, tensor
from tests.tokens.real_files import path_of

NUM_BERT_TOKENS = 21_128
NUM_QWEN_ROWS = 151_936
LAST_QWEN_TOKEN = 151_664
OUTSIDE = 50_256  # GPT-2's end token, which is Transformers' default for every gpt2
CHINESE_GPT2 = {
    "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "activation_function": "gelu_new",
    "n_ctx": 1024, "n_positions": 1024, "n_embd": 32, "n_head": 2, "n_layer": 2, "n_inner": None,
    "layer_norm_epsilon": 1e-5, "tokenizer_class": "BertTokenizer", "vocab_size": NUM_BERT_TOKENS,
    "bos_token_id": OUTSIDE, "eos_token_id": OUTSIDE,
}  # fmt: skip
BERT_SPECIAL = {f"{name.lower()}_token": f"[{name}]" for name in ("UNK", "SEP", "PAD", "CLS", "MASK")}
QWEN = {
    "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_act": "silu", "hidden_size": 32,
    "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
    "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "rope_theta": 1e6, "tie_word_embeddings": True,
    "use_sliding_window": False, "bos_token_id": 151643, "eos_token_id": 151645, "dtype": "bfloat16",
    "vocab_size": NUM_QWEN_ROWS,
}  # fmt: skip
# What Qwen2.5's own template writes for turns without tools.
QWEN_TEMPLATE = (
    "{% if messages[0].role != 'system' %}<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. "
    "You are a helpful assistant.<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
Weights = Mapping[str, NDArray[np.float32]]


def bert_vocabulary() -> list[str]:
    """21,128 tokens in the real one's order of kinds: specials, signs, Chinese, words, "##" and the rest."""
    start = ["[PAD]", *(f"[unused{i}]" for i in range(1, 100)), "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    signs = [chr(code) for code in (*range(0x21, 0x41), *range(0x5B, 0x7F)) if not chr(code).isalpha()]
    letters = [chr(code) for code in range(0x61, 0x7B)]
    marks = [*"，。！？：；“”‘’（）《》、…"]
    words = ["the", "of", "hello", "world", "next", "token", "run"]
    inside = [f"##{text}" for text in ("ning", "ing", *letters, *"0123456789")]
    around = [*start, *signs, *letters, *marks, *words, *inside]
    num_han = (NUM_BERT_TOKENS - len(around)) // 2
    han = [chr(0x4E00 + i) for i in range(num_han)]
    rest = [*around, *han, *(f"##{char}" for char in han)]
    return [*rest, *(f"##{i:05}" for i in range(NUM_BERT_TOKENS - len(rest)))]


def real_bert_vocabulary(packages: Path) -> list[str]:
    """The vocabulary of bert-base-chinese, from where `real_files.fetch` has put it."""
    return path_of(packages, "bert-base-chinese").read_text(encoding="utf-8").split("\n")[:NUM_BERT_TOKENS]


def qwen_tokenizer(packages: Path) -> dict[str, Any]:
    """Qwen2.5's tokenizer.json: Qwen3's without the four special tokens that came later."""
    path = path_of(packages, "qwen3") / "tokenizer.json"
    spec: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    spec["added_tokens"] = [token for token in spec["added_tokens"] if token["id"] <= LAST_QWEN_TOKEN]
    return spec


def write_chinese_gpt2(folder: Path, tokens: Sequence[str] = (), **config: Any) -> Path:
    """The folder of uer/gpt2-chinese-cluecorpussmall; `config` goes over its config.json."""
    _write_bert_files(folder, tokens, model_max_length=1024)
    _write(folder / "config.json", {**CHINESE_GPT2, **config})
    write_checkpoint(folder / "pytorch_model.bin", gpt2_weights())
    return folder


def write_bert_base_chinese(folder: Path, tokens: Sequence[str] = ()) -> Path:
    """The tokenizer's folder of bert-base-chinese: capitals count, though its vocabulary has none."""
    from tokenglass.tokens.wordpiece import wordpiece_spec

    tokens = tokens or bert_vocabulary()
    _write_bert_files(folder, tokens, model_max_length=512)
    _write(folder / "config.json", {"architectures": ["BertForMaskedLM"], "model_type": "bert",
                                    "max_position_embeddings": 512, "vocab_size": len(tokens)})  # fmt: skip
    around = [{"SpecialToken": {"id": text, "type_id": 0}} for text in ("[CLS]", "[SEP]")]
    text = {"Sequence": {"id": "A", "type_id": 0}}
    pair = {"Sequence": {"id": "B", "type_id": 1}}
    ids = {text: {"id": text, "ids": [tokens.index(text)], "tokens": [text]} for text in ("[CLS]", "[SEP]")}
    processor = {"type": "TemplateProcessing", "single": [around[0], text, around[1]],
                 "pair": [around[0], text, around[1], pair, around[1]], "special_tokens": ids}  # fmt: skip
    spec = {"version": "1.0", "truncation": None, "padding": None, **wordpiece_spec(tokens, lower_case=False)}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    spec["added_tokens"] = [{**token, **flags} for token in spec["added_tokens"]]
    decoder = {"type": "WordPiece", "prefix": "##", "cleanup": True}
    _write(folder / "tokenizer.json", {**spec, "post_processor": processor, "decoder": decoder})
    return folder


def write_qwen(folder: Path, tokenizer: Mapping[str, Any]) -> Path:
    """The folder of Qwen/Qwen2.5-0.5B-Instruct, with its tokenizer.json."""
    _write(folder / "config.json", QWEN)
    _write(folder / "generation_config.json", {
        "bos_token_id": 151643, "pad_token_id": 151643, "eos_token_id": [151645, 151643], "do_sample": True,
        "repetition_penalty": 1.1, "temperature": 0.7, "top_p": 0.8, "top_k": 20,
    })  # fmt: skip
    _write(folder / "tokenizer.json", tokenizer)
    _write(folder / "tokenizer_config.json", {
        "add_bos_token": False, "bos_token": None, "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>",
        "unk_token": None, "model_max_length": 131072, "tokenizer_class": "Qwen2Tokenizer",
        "chat_template": QWEN_TEMPLATE,
    })  # fmt: skip
    write_bf16(folder / "model.safetensors", qwen_weights())
    return folder


def gpt2_weights(seed: int = 3) -> dict[str, NDArray[np.float32]]:
    """Every tensor of a gpt2 of CHINESE_GPT2's shape, named as in its checkpoint."""
    draw = _Draw(seed)
    hidden = 32
    weights = {
        "transformer.wte.weight": draw.matrix(NUM_BERT_TOKENS, hidden, 0.5),
        "transformer.wpe.weight": draw.matrix(1024, hidden, 0.5),
    }
    for i in range(2):
        block = f"transformer.h.{i}"
        for name, rows, columns in (
            ("attn.c_attn", hidden, 3 * hidden),
            ("attn.c_proj", hidden, hidden),
            ("mlp.c_fc", hidden, 4 * hidden),
            ("mlp.c_proj", 4 * hidden, hidden),
        ):
            weights[f"{block}.{name}.weight"] = draw.matrix(rows, columns, 0.25)
            weights[f"{block}.{name}.bias"] = draw.vector(columns, 0.0)
        weights |= draw.layer_norm(f"{block}.ln_1", hidden) | draw.layer_norm(f"{block}.ln_2", hidden)
    weights |= draw.layer_norm("transformer.ln_f", hidden)
    return weights | {"lm_head.weight": weights["transformer.wte.weight"]}


def qwen_weights(seed: int = 4) -> dict[str, NDArray[np.float32]]:
    """Every tensor of a qwen2 of QWEN's shape; no head, for it is tied to the embedding."""
    draw = _Draw(seed)
    hidden, kv, ffn = 32, 16, 96
    weights = {
        "model.embed_tokens.weight": draw.matrix(NUM_QWEN_ROWS, hidden, 0.5),
        "model.norm.weight": draw.vector(hidden, 1.0),
    }
    for i in range(2):
        block = f"model.layers.{i}"
        for name, rows, columns in (("q", hidden, hidden), ("k", kv, hidden), ("v", kv, hidden)):
            weights[f"{block}.self_attn.{name}_proj.weight"] = draw.matrix(rows, columns, 0.25)
            weights[f"{block}.self_attn.{name}_proj.bias"] = draw.vector(rows, 0.0)
        weights[f"{block}.self_attn.o_proj.weight"] = draw.matrix(hidden, hidden, 0.25)
        for name, rows, columns in (("gate", ffn, hidden), ("up", ffn, hidden), ("down", hidden, ffn)):
            weights[f"{block}.mlp.{name}_proj.weight"] = draw.matrix(rows, columns, 0.25)
        for name in ("input_layernorm", "post_attention_layernorm"):
            weights[f"{block}.{name}.weight"] = draw.vector(hidden, 1.0)
    return weights


def write_checkpoint(path: Path, weights: Weights) -> Path:
    """What `torch.save` makes of a state dict: a pickle, and a storage for each tensor."""
    items = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as file:
        for key, (name, values) in enumerate(weights.items()):
            strides = tuple(int(np.prod(values.shape[i + 1 :])) for i in range(values.ndim))
            items.append((name, tensor(values.shape, strides, key=str(key), num_items=values.size)))
            file.writestr(f"archive/data/{key}", values.astype("<f4").tobytes())
        file.writestr("archive/data.pkl", state(*items))
        file.writestr("archive/byteorder", "little")
        file.writestr("archive/version", "3\n")
    return path


def write_bf16(path: Path, weights: Weights) -> Path:
    """A safetensors file; the values must be bfloat16 already."""
    header, data = {}, bytearray()
    for name, values in weights.items():
        start = len(data)
        data += (values.view(np.uint32) >> 16).astype("<u2").tobytes()
        header[name] = {"dtype": "BF16", "shape": values.shape, "data_offsets": [start, len(data)]}
    raw = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    path.write_bytes(struct.pack("<Q", len(raw)) + raw + data)
    return path


class _Draw:
    """Random tensors whose values bfloat16 can hold."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def matrix(self, rows: int, columns: int, scale: float) -> NDArray[np.float32]:
        return self._rounded(self._random.standard_normal((rows, columns), np.float32) * np.float32(scale))

    def vector(self, length: int, middle: float) -> NDArray[np.float32]:
        return self._rounded(self._random.random(length, np.float32) * np.float32(0.5) + np.float32(middle))

    def layer_norm(self, name: str, length: int) -> dict[str, NDArray[np.float32]]:
        return {f"{name}.weight": self.vector(length, 0.75), f"{name}.bias": self.vector(length, -0.25)}

    def _rounded(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        return (values.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def _write_bert_files(folder: Path, tokens: Sequence[str], *, model_max_length: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(tokens or bert_vocabulary()) + "\n", encoding="utf-8")
    _write(folder / "special_tokens_map.json", BERT_SPECIAL)
    config = {"do_lower_case": False, "model_max_length": model_max_length}
    _write(folder / "tokenizer_config.json", config)


def _write(path: Path, value: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
