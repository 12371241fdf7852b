"""A model drawn from top to bottom: the residual stream is the line, what is added to it stands beside it.

          ids
           │
       embedding
           │
    ╭──────┼─ 30 layers
    │      ├────╮
    │      │  norm …  attention …  out
    │      ⊕←───╯
    ╰──────┤
          head

Each line says what it takes and gives, and what all layers together hold of it, so that a column adds up.
Boxes are letters, at most 80 cells wide; where stdout lacks them `plain` stands in (`show.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tokenglass.cli.columns import clip, escaped, left, right, size, width
from tokenglass.cli.language import t

STREAM = 6  # the column of the line
BRANCH = 9  # where the words of a branch begin
SHAPE, PARAMETERS, BYTES, TYPES = 27, 21, 10, 10  # widths; types have what is left
MAX_OTHERS = 12
WIDTH = 80
ACTIVATIONS = {"gemma3": "GeGLU", "gemma2": "GeGLU", "gemma": "GeGLU", "gpt2": "GELU"}
ATTENTION, ACTIVATION = "attention", "activation"  # steps without weights
# the two branches of a layer: what is said -> the kinds of tensors that do it
BRANCHES: tuple[tuple[tuple[str, tuple[str, ...]], ...], ...] = (
    (
        ("norm", ("attn_norm",)),
        ("q, k, v", ("attn_q", "attn_k", "attn_v", "attn_qkv")),
        ("norm of q, k", ("attn_q_norm", "attn_k_norm")),
        (ATTENTION, ()),
        ("out", ("attn_output",)),
        ("norm", ("post_attention_norm",)),
    ),
    (
        ("norm", ("ffn_norm",)),
        ("router", ("ffn_gate_inp", "exp_probs_b")),
        ("gate, up", ("ffn_gate", "ffn_up")),
        ("experts: gate, up", ("ffn_gate_exps", "ffn_up_exps", "ffn_gate_up_exps")),
        (ACTIVATION, ()),
        ("down", ("ffn_down",)),
        ("experts: down", ("ffn_down_exps",)),
        ("norm", ("post_ffw_norm",)),
    ),
)
ENDS = ("token_embd", "position_embd", "output_norm", "output")


def drawing(record: dict[str, Any]) -> Iterator[str]:
    """The lines of a model's drawing. `record`: of `show_record.describe`."""
    kinds = {kind["name"]: kind for kind in record["tensors"] if kind["is_in_layers"] or kind["name"] in ENDS}
    drawn = {*ENDS, *(name for branch in BRANCHES for _, names in branch for name in names)}
    yield _line("", t("takes → gives"), t("parameters"), t("bytes"), t("type"))
    yield _on_stream(t("ids"))
    yield _on_stream("│")
    yield _row(_on_stream(t("embedding")), [kinds.get("token_embd")], record)
    if "position_embd" in kinds:
        yield _row(_on_stream(t("+ positions")), [kinds["position_embd"]], record)
    yield _on_stream("│")
    yield f"╭{'─' * (STREAM - 1)}┼─ " + t("{n} layers", n=record["layers"] or "?")
    for branch in BRANCHES:
        yield from _branch(branch, kinds, record)
    others = [kind for kind in record["tensors"] if kind["name"] not in drawn]
    yield from _others([kind for kind in others if kind["is_in_layers"]], record, f"│{' ' * (STREAM - 1)}│  ")
    yield f"╰{'─' * (STREAM - 1)}┤"
    yield from _others([kind for kind in others if not kind["is_in_layers"]], record, "  ")
    yield _row(_on_stream(t("norm")), [kinds.get("output_norm")], record)
    yield _head(kinds, record)
    yield _on_stream("│")
    total, num_bytes = quantity(record["parameters"]), size(record["num_bytes"])
    yield _line(_on_stream(t("scores of all tokens")), "", total, num_bytes, "")


def _branch(
    steps: tuple[tuple[str, tuple[str, ...]], ...], kinds: dict[str, Any], record: dict[str, Any]
) -> Iterator[str]:
    found = [(label, [kinds[name] for name in names if name in kinds]) for label, names in steps]
    if not any(parts for _, parts in found):
        return
    frame = f"│{' ' * (STREAM - 1)}│".ljust(BRANCH)
    activation = ACTIVATIONS.get(record["architecture"], "SwiGLU")
    yield f"│{' ' * (STREAM - 1)}├────╮"
    for label, parts in found:
        if label == ATTENTION:
            for i, words in enumerate(_attention(record)):
                yield left(frame + (t("attention") if i == 0 else ""), SHAPE) + clip(words, WIDTH - SHAPE)
        elif label == ACTIVATION:
            yield frame + activation
        elif parts:
            words = label.removeprefix("gate, ") if activation == "GELU" else label
            yield _row(frame + t(words), parts, record)
    yield f"│{' ' * (STREAM - 1)}⊕←───╯"


def _attention(record: dict[str, Any]) -> Iterator[str]:
    """What attention does, in words: heads, positions, windows."""
    heads, kv_heads, head_dim = record["heads"], record["kv_heads"], record["head_dim"]
    if heads and kv_heads and head_dim:
        yield t("heads: {heads} of {dim}; KV heads: {kv}", heads=heads, kv=kv_heads, dim=head_dim)
    rope = record["rope"]
    turned = rope and (
        t("positions by rotation (RoPE)")
        if rope["layers"] == record["layers"]
        else t("layers that rotate (RoPE): {n}", n=rope["layers"])
    )
    if turned:
        yield turned
    windows = record["windows"]
    for window, count in windows.items():
        if window != "0":
            yield t("layers that see the last {window} positions: {n}", n=count, window=f"{int(window):,}")
        elif len(windows) > 1:
            yield t("layers that see all: {n}", n=count)


def _head(kinds: dict[str, Any], record: dict[str, Any]) -> str:
    if "output" in kinds:
        return _row(_on_stream(t("head")), [kinds["output"]], record)
    embedding = kinds.get("token_embd")
    shape = _turned_shape(embedding["shape"]) if embedding else ""
    return left(left(_on_stream(t("head")), SHAPE) + shape, SHAPE + PARAMETERS + 1) + t("the embedding again")


def _others(kinds: list[dict[str, Any]], record: dict[str, Any], frame: str) -> Iterator[str]:
    """Tensors that have no place in the drawing, by their own names."""
    for kind in kinds[:MAX_OTHERS]:
        yield _row(frame + escaped(kind["name"]), [kind], record)
    if len(kinds) > MAX_OTHERS:
        yield frame + t("… {n} more kinds of tensors", n=len(kinds) - MAX_OTHERS)


def _row(start: str, parts: list[dict[str, Any] | None], record: dict[str, Any]) -> str:
    """One step with what it holds; of several tensors side by side the sums."""
    present = [part for part in parts if part]
    if not present:
        return start
    types: dict[str, int] = {}
    for part in present:
        for name, count in part["types"].items():
            types[name] = types.get(name, 0) + count
    parameters, num_bytes = (sum(part[key] for part in present) for key in ("num_parameters", "num_bytes"))
    order = sorted(types, key=lambda name: -types[name])
    return _line(start, _shape(present, record), quantity(parameters), size(num_bytes), ", ".join(order))


def _shape(parts: list[dict[str, Any]], record: dict[str, Any]) -> str:
    """`576 → 960` of matrices side by side, `576` of a vector, `49,152 × 576` of a table."""
    shapes = [part["shape"] for part in parts]
    if parts[0]["name"] in ("token_embd", "position_embd"):
        return " × ".join(f"{length:,}" for length in shapes[0])
    if any(len(shape) != 2 for shape in shapes):
        return " × ".join(f"{length:,}" for length in shapes[0])
    if parts[0]["name"] == "ffn_gate" and len({tuple(shape) for shape in shapes}) == 1 < len(shapes):
        return f"{shapes[0][1]:,} → {len(shapes)} × {shapes[0][0]:,}"
    return f"{shapes[0][1]:,} → {sum(shape[0] for shape in shapes):,}"


def _turned_shape(shape: list[int]) -> str:
    return f"{shape[1]:,} → {shape[0]:,}" if len(shape) == 2 else ""


def _on_stream(words: str) -> str:
    """`words` with their middle on the line."""
    return " " * max(1, STREAM - (width(words) - 1) // 2) + words


def _line(start: str, shape: str, parameters: str, num_bytes: str, types: str) -> str:
    row = left(start, SHAPE - 1) + " " + left(shape, PARAMETERS - 1)
    row += right(parameters, PARAMETERS - 10) + right(num_bytes, BYTES) + "  "
    return (row + clip(types, WIDTH - width(row))).rstrip()


def quantity(number: int) -> str:
    """`134.5 M`, `17.3 k`, `576`."""
    for unit, name in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**4, "k")):
        if number >= unit:
            return f"{number / (1000 if name == 'k' else unit):.1f} {name}"
    return f"{number:,}"
