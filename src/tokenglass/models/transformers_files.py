"""From a folder or a GGUF file to a model of Transformers, on a device.

torch and transformers are imported here and in `transformers.py`, by name and only when somebody asks for
this engine: they take seconds, and the core does without them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any, Literal

from tokenglass import kernels
from tokenglass.errors import MissingExtraError, ModelFileError, ParameterError, TokenglassError, UsageError
from tokenglass.models.transformers import TransformersModel

DType = Literal["f32", "bf16", "f16"]
DTYPES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}


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
        unpacked = transformers.GgufConfig(dequantize=True)  # else it is done again for every token
        where |= {"quantization_config": unpacked}
    with plain_errors(path), quiet():
        if path.is_dir():
            check_config(transformers, path, trust_remote_code)
        where |= {"trust_remote_code": trust_remote_code}
        model, info = transformers.AutoModelForCausalLM.from_pretrained(
            **where,
            dtype=getattr(torch, DTYPES[dtype]) if dtype else "auto",
            device_map=device,
            output_loading_info=True,
        )
        if missing := sorted(info["missing_keys"]):  # they would be filled with random numbers
            raise ModelFileError(path, f"tensor {missing[0]}", f"is missing, one of {len(missing)}")
        made = TransformersModel(model, cpu=cpu, notes=[described(transformers, model)])
        if not made.is_causal:  # BERT, XLNet
            raise ModelFileError(path, "config", "scores depend on the tokens after them: no causal model")
        return made


def described(transformers: Any, model: Any) -> str:
    """`LlamaForCausalLM by Transformers 5.24.0 on cpu in float32`"""
    how = f"{type(model).__name__} by Transformers {transformers.__version__}"
    return f"{how} on {model.device} in {str(model.dtype).removeprefix('torch.')}"


def libraries() -> tuple[Any, Any]:
    """The modules torch and transformers. MissingExtraError: one of them, or accelerate, is not installed."""
    try:
        torch, transformers, _ = map(import_module, ("torch", "transformers", "accelerate"))
    except ModuleNotFoundError:
        raise MissingExtraError("--engine transformers", "transformers") from None
    return torch, transformers


def check_device(torch: Any, device: str) -> None:
    """ParameterError where torch does not see `device`; it names those that are there."""
    there = ["cpu"]
    if torch.cuda.is_available():
        there += ["cuda", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
    if torch.backends.mps.is_available():
        there.append("mps")
    if device not in there:
        raise ParameterError(
            "device",
            f"{device!r} is not there: torch {torch.__version__} sees {', '.join(there)}",
            remedy="A GPU needs the build of torch that is made for it: https://pytorch.org/get-started",
        )


def check_config(transformers: Any, path: Path, is_trusted: bool) -> None:
    """UsageError: code of the folder would have to run, and nobody allowed it. ModelFileError: the model
    answers a second text.
    """
    config, _ = transformers.PreTrainedConfig.get_config_dict(path, local_files_only=True)
    own = (config.get("auto_map") or {}).get("AutoModelForCausalLM")
    if own and not is_trusted and config.get("model_type") not in transformers.CONFIG_MAPPING:
        raise UsageError(
            f"{path.name} brings its own Python code ({own}), and code of a model is never run unasked: "
            "it can do whatever you can",
            remedy="Read it, and if you trust it add --trust-remote-code",
        )
    if config.get("is_encoder_decoder"):
        raise ModelFileError(path, "config", "this is an encoder with a decoder, no causal model")


@contextmanager
def plain_errors(path: Path) -> Iterator[None]:
    """Turns whatever Transformers raises while it loads into one line of ours."""
    try:
        yield
    except TokenglassError:
        raise
    except Exception as error:  # others' code, which may raise anything
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise ModelFileError(path, "transformers", f"it cannot be loaded: {what[:400]}") from error


@contextmanager
def quiet() -> Iterator[None]:
    """No bars and hints of Transformers on stderr; afterwards its verbosity is as it was."""
    logging = import_module("transformers.utils.logging")
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        with redirect_stderr(StringIO()):
            yield
    finally:
        logging.set_verbosity(verbosity)
