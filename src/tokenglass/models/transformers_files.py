"""From a folder or a GGUF file to a model of Transformers, on a device.

torch and transformers are imported here and in `transformers.py`, by name and only when somebody asks for
this engine: they take seconds, and the core does without them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from tokenglass import kernels
from tokenglass.errors import MissingExtraError, ModelFileError, ParameterError, TokenglassError, UsageError
from tokenglass.models.transformers import TransformersModel

DType = Literal["f32", "bf16", "f16"]
DTYPES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}
NO_CAUSAL_MODEL = ("MaskedLM", "Classification", "QuestionAnswering", "PreTraining", "MultipleChoice")


def open_transformers(
    path: Path,
    *,
    cpu: kernels.Cpu,
    device: str = "cpu",
    dtype: DType | None = None,
    trust_remote_code: bool = False,
) -> TransformersModel:
    """The model at `path`, a folder or a GGUF file, ready to compute on `device` (cpu, cuda, cuda:1, mps).

    dtype: of weights and arithmetic; None: as the files have them. trust_remote_code: Python files of the
    folder may run. MissingExtraError; ParameterError: no such device; UsageError: the folder wants to run
    code of its own; ModelFileError: it is no causal model, or Transformers cannot load it.
    """
    torch, transformers = libraries()
    check_device(torch, device)
    if dtype is not None and dtype not in DTYPES:
        raise ParameterError("dtype", f"must be one of {', '.join(DTYPES)}, not {dtype!r}")
    torch.set_num_threads(cpu.num_threads)
    where: dict[str, Any] = {"pretrained_model_name_or_path": path, "local_files_only": True}
    if path.is_file():
        where |= {"pretrained_model_name_or_path": path.parent, "gguf_file": path.name}
    with plain_errors(path), quiet(transformers):
        where |= {"trust_remote_code": check_code(transformers, path, trust_remote_code)}
        config = transformers.AutoConfig.from_pretrained(**where)
        check_causal(config, path)
        model, info = transformers.AutoModelForCausalLM.from_pretrained(
            **where,
            dtype=getattr(torch, DTYPES[dtype]) if dtype else "auto",
            device_map=device,
            output_loading_info=True,
        )
        if missing := sorted(info["missing_keys"]):  # they would be filled with random numbers
            raise ModelFileError(path, f"tensor {missing[0]}", f"is missing, one of {len(missing)}")
        how = f"{type(model).__name__} by Transformers {transformers.__version__} on {model.device}"
        return TransformersModel(model, cpu=cpu, notes=[f"{how} in {str(model.dtype).removeprefix('torch.')}"])


def libraries() -> tuple[Any, Any]:
    """The modules torch and transformers. MissingExtraError: one of them, or accelerate, is not installed."""
    try:
        torch, transformers, _ = map(import_module, ("torch", "transformers", "accelerate"))
    except ModuleNotFoundError:
        raise MissingExtraError("--engine transformers", "transformers") from None
    return torch, transformers


def check_device(torch: Any, device: str) -> None:
    """ParameterError where torch does not see `device`; it names those that are there."""
    there = ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
    if torch.backends.mps.is_available():
        there.append("mps")
    if device not in (*there, "cuda" if len(there) > 1 and there[1] == "cuda:0" else "cpu"):
        raise ParameterError(
            "device",
            f"{device!r} is not there: torch {torch.__version__} sees {', '.join(there)}",
            remedy="A GPU needs the build of torch that is made for it: https://pytorch.org/get-started",
        )


def check_code(transformers: Any, path: Path, is_trusted: bool) -> bool:
    """Whether code of the folder may run. UsageError: it would have to, and nobody allowed it."""
    if is_trusted or path.is_file():
        return is_trusted
    config, _ = transformers.PreTrainedConfig.get_config_dict(path, local_files_only=True)
    own = (config.get("auto_map") or {}).get("AutoModelForCausalLM")
    if own and config.get("model_type") not in transformers.CONFIG_MAPPING:
        raise UsageError(
            f"{path.name} brings its own Python code ({own}), and code of a model is never run unasked: "
            "it can do whatever you can",
            remedy="Read it, and if you trust it add --trust-remote-code",
        )
    return False


def check_causal(config: Any, path: Path) -> None:
    """ModelFileError: the model reads a text in both directions, or needs a second one."""
    if getattr(config, "is_encoder_decoder", False):
        raise ModelFileError(path, "config", f"{config.model_type} is an encoder-decoder, no causal model")
    names = getattr(config, "architectures", None) or []
    if names and all(name.endswith(NO_CAUSAL_MODEL) for name in names):
        raise ModelFileError(path, "config", f"{names[0]} scores no next token and cannot generate")


@contextmanager
def plain_errors(path: Path) -> Iterator[None]:
    """Turns whatever Transformers raises while it loads into one line of ours."""
    try:
        yield
    except TokenglassError:
        raise
    except Exception as error:  # noqa: BLE001 - others' code, which may raise anything
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise ModelFileError(path, "transformers", f"it cannot be loaded: {what[:400]}") from error


@contextmanager
def quiet(transformers: Any) -> Iterator[None]:
    """No bars and hints of Transformers on our stderr; afterwards its settings are as they were."""
    logging = transformers.utils.logging
    verbosity, has_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if has_bars:
            logging.enable_progress_bar()
