"""Which layers see a sliding window, and which do not turn with the position, as a `config.json` states it.

    llama       none slides
    mistral     all slide, phi3 too: where there is a window
    qwen2, 3    from `max_window_layers` on, where `use_sliding_window` says so
    smollm3     likewise those that do not turn; of these `no_rope_layers` has a 0
    gemma3      all but every sixth

Newer files say it layer by layer, in `layer_types`. A GGUF has the length of the window, and a pattern where
the layers are others than `models/config.py` expects.
"""

from __future__ import annotations

import numpy as np

from tokenglass.errors import ModelFileError
from tokenglass.formats.cursor import shown
from tokenglass.formats.hf_settings import Settings
from tokenglass.formats.tensor_file import Value

MAX_LAYERS = 1024
KINDS = ("full_attention", "sliding_attention")
SWITCHED = ("qwen2", "qwen3", "smollm3")  # their window counts where `use_sliding_window` says so
EXPECTED = {"mistral": 0, "phi3": 0, "gemma3_text": 6}  # WINDOW_PATTERNS of models/config.py; 1 for others


def layer_keys(settings: Settings) -> dict[str, Value]:
    """The keys of the window and of layers that do not turn. ModelFileError names the setting that is odd."""
    model_type, num_layers = settings.text("model_type", "llama"), settings.count("num_hidden_layers")
    if num_layers > MAX_LAYERS:
        raise ModelFileError(
            settings.path, "num_hidden_layers", f"is {num_layers}, expected 1 to {MAX_LAYERS}"
        )
    window = None if model_type == "llama" else settings.config.get("sliding_window")
    if model_type in SWITCHED and not settings.flag("use_sliding_window", False):
        window = None
    turned = _turned(settings, num_layers) if model_type == "smollm3" else [True] * num_layers
    slides = [window is not None and slid for slid in _sliding(settings, model_type, turned)]
    slides = _stated(settings, model_type, slides)
    keys: dict[str, Value] = {}
    if any(slides):
        if window is None:
            raise ModelFileError(
                settings.path, "layer_types", "names layers that slide, and no window is set"
            )
        keys["attention.sliding_window"] = settings.count("sliding_window")
        if slides != all_but_every(EXPECTED.get(model_type, 1), num_layers):
            keys["attention.sliding_window_pattern"] = np.array(slides)
    if turned != all_but_every(4 if model_type == "smollm3" else 0, num_layers):
        keys["rope.pattern"] = np.array(turned)
    return keys


def all_but_every(nth: int, num_layers: int) -> list[bool]:
    """A flag for each layer, False for every n-th; 0: all are True."""
    return [nth == 0 or (i + 1) % nth != 0 for i in range(num_layers)]


def _sliding(settings: Settings, model_type: str, turned: list[bool]) -> list[bool]:
    """The layers that slide where there is a window and no `layer_types`."""
    if model_type.startswith("qwen"):
        first = settings.config.get("max_window_layers", 28)
        if type(first) is not int:
            raise ModelFileError(settings.path, "max_window_layers", f"is {shown(str(first)[:80])}")
        return [i >= first for i in range(len(turned))]
    if model_type == "smollm3":
        return [not turns for turns in turned]
    nth = EXPECTED.get(model_type, 1)
    if model_type == "gemma3_text":
        nth = settings.count("sliding_window_pattern", settings.count("_sliding_window_pattern", nth))
    return all_but_every(nth, len(turned))


def _stated(settings: Settings, model_type: str, slides: list[bool]) -> list[bool]:
    """What `layer_types` says. Where the architecture has no such setting, it may only say the same."""
    kinds = settings.config.get("layer_types")
    if kinds is None:
        return slides
    if not isinstance(kinds, list) or len(kinds) != len(slides) or any(kind not in KINDS for kind in kinds):
        problem = f"must be a list of {len(slides)}, each {KINDS[0]} or {KINDS[1]}"
        raise ModelFileError(settings.path, "layer_types", problem)
    stated = [kind == KINDS[1] for kind in kinds]
    if stated != slides and model_type in ("llama", "mistral", "phi3"):
        raise ModelFileError(settings.path, "layer_types", "differs from layer to layer: not supported yet")
    return stated


def _turned(settings: Settings, num_layers: int) -> list[bool]:
    """`no_rope_layers` of SmolLM3: 1 for a layer that turns q and k, 0 for one that does not."""
    flags = settings.config.get("no_rope_layers")
    if flags is None:
        return all_but_every(settings.count("no_rope_layer_interval", 4), num_layers)
    if not isinstance(flags, list) or len(flags) < num_layers or any(flag not in (0, 1) for flag in flags):
        problem = f"must be a list of {num_layers}, each 0 or 1"
        raise ModelFileError(settings.path, "no_rope_layers", problem)
    return [bool(flag) for flag in flags[:num_layers]]
