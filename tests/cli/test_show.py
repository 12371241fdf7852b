"""`tokenglass show`: everything from the header, drawn in 80 columns, of models that run and that do not."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import Command, child, finish
from tests.hub.fake_hub import FakeHub, serving
from tests.support.hf_folder import write_tiny_folder
from tests.support.hf_tokenizer import write_tokenizer
from tests.support.tiny_llama import TinyLlama, write_tiny_llama
from tests.support.tiny_models import write_tiny_model
from tokenglass.cli import show_record
from tokenglass.cli.columns import width
from tokenglass.cli.language import set_language
from tokenglass.cli.show import page, show
from tokenglass.fit import plan
from tokenglass.formats import open_model
from tokenglass.formats.write_safetensors import write_safetensors
from tokenglass.hub import headers
from tokenglass.models.registry import ARCHITECTURES

TINY = """\
                           takes → gives        parameters     bytes  type
     ids
      │
  embedding                300 × 64                 19.2 k   20.4 kB  Q8_0
      │
╭─────┼─ 2 layers
│     ├────╮
│     │  norm              64                          128     512 B  F32
│     │  q, k, v           64 → 128                 16.4 k   10.2 kB  Q4_1
│     │  attention         heads: 4 of 16; KV heads: 2
│     │                    positions by rotation (RoPE)
│     │  out               64 → 64                   8,192    5.1 kB  Q4_1
│     ⊕←───╯
│     ├────╮
│     │  norm              64                          128     512 B  F32
│     │  gate, up          64 → 2 × 96              24.6 k   15.4 kB  Q4_1
│     │  SwiGLU
│     │  down              96 → 64                  12.3 k    7.7 kB  Q4_1
│     ⊕←───╯
╰─────┤
     norm                  64                           64     256 B  F32
     head                  64 → 300              the embedding again
      │
 scores of all tokens                               81.0 k   60.1 kB
"""


@pytest.fixture(autouse=True)
def _english_again(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("TOKENGLASS_LANG", raising=False)
    yield
    set_language("en")


@pytest.fixture(autouse=True)
def _small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(show_record, "memory_bytes", lambda: 45_500_000)


def test_a_model_is_drawn(tiny_model_path: Path, tokenglass_: Command) -> None:
    outcome = tokenglass_("show", tiny_model_path)
    assert outcome.err == ""
    assert TINY in outcome.out
    assert "llama · 81.0 k parameters · 60.1 kB · it runs here\n" in outcome.out
    assert "tokenizer   byte level, gpt2 / smollm, 300 tokens\n" in outcome.out
    assert "template    196 characters\n" in outcome.out
    assert "\x1b" not in outcome.out


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_no_line_is_wider_than_80_cells(
    tmp_path: Path, tokenglass_: Command, architecture: str, language: str
) -> None:
    path = write_tiny_model(tmp_path / "a-model.gguf", architecture)
    lines = tokenglass_("show", path, "--lang", language).out.splitlines()
    assert max(map(width, lines)) <= 80
    assert ("it runs here" if language == "en" else "能在本机运行") in lines[1]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_columns_add_up_and_every_tensor_has_its_place(
    tmp_path: Path, tokenglass_: Command, architecture: str
) -> None:
    path = write_tiny_model(tmp_path / "m.gguf", architecture)
    record = tokenglass_("show", path, "--json").json
    with open_model(path) as file:
        assert record["num_bytes"] == file.data_bytes
        assert sum(kind["num_bytes"] for kind in record["tensors"]) == file.data_bytes
        assert sum(sum(kind["types"].values()) for kind in record["tensors"]) <= len(file.tensors)
    shown = tokenglass_("show", path).out
    for kind in record["tensors"]:  # by its work, not by its name
        assert kind["name"] not in shown.replace("norm", "")


def test_an_activation_without_a_gate_has_none_in_the_drawing(tmp_path: Path, tokenglass_: Command) -> None:
    out = tokenglass_("show", write_tiny_model(tmp_path / "m.gguf", "gpt2")).out
    assert "GELU" in out
    assert "gate" not in out


def test_windows_are_told_apart(tmp_path: Path, tokenglass_: Command) -> None:
    out = tokenglass_("show", write_tiny_model(tmp_path / "m.gguf", "gemma3")).out
    assert "layers that see all: 1\n" in out
    assert "layers that see the last 16 positions: 5\n" in out
    assert "in windows)" in out


def test_memory_is_the_plan_s(tiny_model_path: Path, tokenglass_: Command) -> None:
    record = tokenglass_("show", tiny_model_path, "--kv", "q8", "--json").json
    with open_model(tiny_model_path) as file:
        planned = plan(file, kv="q8")
    row = record["memory"]["at"][-1]
    assert (row["positions"], row["total"]) == (512, planned.total(512))
    assert record["memory"]["cache_bytes_per_token"] == planned.token_bytes
    assert row["fits"] is False  # 45.5 MB are not enough for Python and a tiny model
    wide = tokenglass_("show", tiny_model_path, "--weights", "f32", "--json").json
    assert wide["memory"]["weights"] > 4 * record["memory"]["weights"]


def test_a_folder_is_shown_as_its_gguf_is(tmp_path: Path, tokenglass_: Command) -> None:
    folder = write_tiny_folder(tmp_path, TinyLlama(tied=False))
    (folder / "README.md").write_text("---\nlicense: apache-2.0\ntags: [x]\n---\nlicense: none\n")
    assert tokenglass_("convert", folder, tmp_path / "m.gguf").status == 0
    ours, of_file = (tokenglass_("show", path, "--json").json for path in (folder, tmp_path / "m.gguf"))
    assert ours["licence"] == "apache-2.0"
    for key in ("architecture", "parameters", "num_bytes", "windows", "rope", "layers", "memory"):
        assert ours[key] == of_file[key], key
    assert ours["tokenizer"]["ends"] == of_file["tokenizer"]["ends"]
    assert ours["chat_template"] == of_file["chat_template"]


def test_what_a_chat_template_knows(tmp_path: Path, tokenglass_: Command) -> None:
    template = "{% if tools %}{{ tools }}{% endif %}{% if enable_thinking %}<think>{% endif %}"
    path = write_tiny_llama(tmp_path / "m.gguf", metadata={"tokenizer.chat_template": template})
    assert tokenglass_("show", path, "--json").json["chat_template"]["knows"] == ["tools", "thinking"]
    assert "characters; knows tools, thinking\n" in tokenglass_("show", path).out
    path = write_tiny_llama(tmp_path / "n.gguf", metadata={"tokenizer.chat_template": None})
    assert "template    none: it continues texts\n" in tokenglass_("show", path).out


def test_an_architecture_that_cannot_run_is_shown_all_the_same(tmp_path: Path, tokenglass_: Command) -> None:
    path = write_tiny_llama(tmp_path / "m.gguf", metadata={"general.architecture": "mamba"})
    out = tokenglass_("show", path).out
    assert "mamba · 81.0 k parameters" in out
    assert "it cannot run here" in out
    assert "m.gguf: general.architecture: mamba is not supported yet" in out
    assert "Transformers may run it: --engine transformers\n" in out
    assert "│     │  gate, up" in out
    record = tokenglass_("show", path, "--json").json
    assert (record["runs"], record["memory"]) == (False, None)
    path = write_tiny_llama(tmp_path / "e.gguf", metadata={"general.architecture": "bert"})
    out = tokenglass_("show", path).out
    assert "encoder" in out
    assert "Transformers" not in out


def write_foreign(folder: Path, **config: Any) -> Path:
    names = ["model.embed_tokens.weight", "model.norm.weight"]
    names += [f"model.layers.{i}.self_attn.{x}_proj.weight" for i in range(2) for x in "qkvo"]
    names += [f"model.layers.{i}.block_sparse_moe.experts.{j}.w1.weight" for i in range(2) for j in range(4)]
    arrays = {name: np.zeros((32, 32) if "norm" not in name else (32,), np.float32) for name in names}
    write_safetensors(folder / "model.safetensors", arrays)
    settings = {"model_type": "mixtral", "num_hidden_layers": 2, "hidden_size": 32, **config}
    (folder / "config.json").write_text(json.dumps(settings))
    return write_tokenizer(folder)


def test_a_folder_of_a_foreign_model_is_shown(tmp_path: Path, tokenglass_: Command) -> None:
    write_foreign(tmp_path, num_attention_heads=4, num_key_value_heads=2, num_local_experts=4)
    outcome = tokenglass_("show", tmp_path)
    assert "config.json: model_type: mixtral is not supported yet" in outcome.out.replace("\n", " ")
    assert "│     │  q, k, v           32 → 96" in outcome.out
    assert "│     │  attention         heads: 4 of 8; KV heads: 2\n" in outcome.out
    assert "│     │  block_sparse_moe" in outcome.out
    assert "experts     4, ? at a time\n" in outcome.out
    kinds = {kind["name"]: kind for kind in tokenglass_("show", tmp_path, "--json").json["tensors"]}
    assert kinds["block_sparse_moe.experts.*.w1"]["count"] == 8


def test_weights_quantised_elsewhere_are_named(tmp_path: Path, tokenglass_: Command) -> None:
    write_foreign(tmp_path, model_type="llama", quantization_config={"quant_method": "gptq"})
    assert "the weights are quantised in a way" in tokenglass_("show", tmp_path).out


def test_a_folder_without_weights_still_says_what_it_can(tmp_path: Path, tokenglass_: Command) -> None:
    write_foreign(tmp_path, model_type="bert", max_position_embeddings=512)
    (tmp_path / "model.safetensors").unlink()
    out = tokenglass_("show", tmp_path).out
    assert "the weights are not here" in out
    assert "512 positions" in out


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (b"{", "config.json: file: is not valid JSON"),
        (b"[]", "config.json: file: must be a JSON object"),
        (b'{"model_type": "x", "model_type": "y"}', "config.json: file: the key model_type appears twice"),
    ],
)
def test_a_broken_config_is_one_line(
    tmp_path: Path, tokenglass_: Command, config: bytes, problem: str
) -> None:
    (tmp_path / "config.json").write_bytes(config)
    assert tokenglass_("show", tmp_path).error.startswith(problem)


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": 7},
        {"model_type": "x" * 500, "num_hidden_layers": 10**40, "hidden_size": -1, "num_attention_heads": 0},
        {"model_type": "a\x1b[2Jb\nc", "num_hidden_layers": True, "text_config": [1]},
        {"model_type": "llama", "num_hidden_layers": 10**6, "hidden_size": 32},
        {"model_type": "x", "hidden_size": 3, "num_attention_heads": 2**30},
    ],
)
def test_odd_settings_are_shown_or_refused_but_never_obeyed(
    tmp_path: Path, tokenglass_: Command, config: dict[str, Any]
) -> None:
    write_foreign(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(config))
    outcome = tokenglass_("show", tmp_path)
    assert outcome.status == 0
    assert "\x1b" not in outcome.out
    assert max(map(width, outcome.out.splitlines())) <= 80


def test_words_of_a_file_cannot_reach_the_terminal(tmp_path: Path, tokenglass_: Command) -> None:
    evil = "\x1b]0;owned\x07\n\u202eevil" * 40
    path = write_tiny_llama(
        tmp_path / "m.gguf", metadata={"general.name": evil, "general.license": evil[:60]}
    )
    lines = tokenglass_("show", path).out.splitlines()
    assert lines[0].startswith("\\x1b]0;owned\\x07\\n\\u202eevil")
    assert all(char not in "".join(lines) for char in "\x1b\x07\u202e")


def test_a_file_cut_anywhere_is_refused_with_its_field(
    tiny_model_path: Path, tmp_path: Path, tokenglass_: Command
) -> None:
    raw = tiny_model_path.read_bytes()
    path = tmp_path / "cut.gguf"
    for length in [*range(0, 64, 7), *range(64, len(raw), len(raw) // 40)]:
        path.write_bytes(raw[:length])
        outcome = tokenglass_("show", path)
        assert outcome.status == 1, length
        assert outcome.error.startswith("cut.gguf: ")


def test_a_shape_that_cannot_be_is_the_reason_it_cannot_run(tmp_path: Path, tokenglass_: Command) -> None:
    path = write_tiny_llama(tmp_path / "m.gguf", metadata={"llama.block_count": np.uint32(4_000_000_000)})
    out = tokenglass_("show", path).out
    assert "llama.block_count: is 4000000000, expected 1 to 1024" in out


def test_letters_stand_in_where_boxes_are_missing(
    tiny_model_path: Path, tokenglass_: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = tokenglass_("show", tiny_model_path, "--json").json
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="latin-1", errors="strict", write_through=True)
    monkeypatch.setattr(sys, "stdout", stdout)
    show("\n".join(page(record)) + "\n")
    out = stdout.buffer.getvalue().decode("latin-1")
    assert "|     +----.\n" in out
    assert "64 > 128" in out


def test_only_the_header_is_read(tmp_path: Path, tiny_model_path: Path, tokenglass_: Command) -> None:
    """A file whose weights were never written, as the hub's headers are kept."""
    raw = tiny_model_path.read_bytes()
    path = tmp_path / "header.gguf"
    with open_model(tiny_model_path) as file:
        start = min(info.offset for info in file.tensors.values())
    path.write_bytes(raw[:start])
    os.truncate(path, len(raw))
    whole, header = (tokenglass_("show", name, "--json").json for name in (tiny_model_path, path))
    assert header | {"path": ""} == whole | {"path": ""}


def test_of_a_model_on_a_hub_only_the_header_is_fetched(
    tmp_path: Path, tokenglass_: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(headers, "FIRST_BYTES", 1 << 15)
    monkeypatch.setenv("TOKENGLASS_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TOKENGLASS_OFFLINE", raising=False)
    shape = TinyLlama(hidden=512, num_heads=8, head_dim=64, ffn=1024)
    body = write_tiny_llama(tmp_path / "big.gguf", shape=shape).read_bytes()
    declared = {"X-Linked-Size": str(len(body)), "X-Linked-ETag": f'"{"0" * 64}"'}
    with serving(FakeHub(declared=declared, body=body)) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        record = tokenglass_("show", "llama-3.2-1b", "--json").json
    assert record["num_bytes"] > 10_000_000
    assert record["licence"] == "Llama 3.2 Community License"
    header = Path(record["path"])
    assert header.read_bytes()[-4096:] == bytes(4096)  # never written
    assert not (tmp_path / "home" / "models" / header.name).exists()


def test_a_pipe_gets_no_colour(tiny_model_path: Path) -> None:
    outcome = finish(child("show", tiny_model_path, env={"FORCE_COLOR": "1"}))
    assert (outcome.status, "\x1b" in outcome.out) == (0, False)
    assert TINY in outcome.out


def test_an_unknown_name_is_refused(tokenglass_: Command) -> None:
    assert tokenglass_("show", "smollm3-x").error.startswith("no model is called 'smollm3-x'")


@pytest.mark.real_models
def test_the_page_shows_what_is_printed(
    real_model_path: Path, tokenglass_: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(show_record, "memory_bytes", lambda: 8_300_000_000)
    root = Path(__file__).parents[2]
    page_text = (root / "docs/en/model-files.md").read_text(encoding="utf-8")
    block = page_text.split("$ tokenglass show smollm2\n")[1].split("```")[0]
    ours = tokenglass_("show", real_model_path).out
    assert ours.replace("apache-2.0", "Apache-2.0") == block  # the catalogue writes it so
