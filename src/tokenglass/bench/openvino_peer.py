"""OpenVINO GenAI on the same GGUF, by its own reader of that format. Runs in the child of `peers.py`."""

from __future__ import annotations

from typing import Any

HOW = "LLMPipeline on the GGUF file, greedy, times by its own performance metrics"

Answer = tuple[float, float, list[int]]


class Peer:
    """One pipeline."""

    def __init__(self, path: str, num_threads: int, _: int, __: str) -> None:
        import openvino_genai

        self.genai: Any = openvino_genai
        self.pipeline: Any = openvino_genai.LLMPipeline(path, "CPU", INFERENCE_NUM_THREADS=num_threads)

    def generate(self, prompts: list[list[int]], num_tokens: int, keep: bool) -> Answer:
        """Its metrics are means over the batch, in milliseconds."""
        import numpy as np
        import openvino

        inputs = openvino.Tensor(np.array(prompts, np.int64))
        mask = openvino.Tensor(np.ones((len(prompts), len(prompts[0])), np.int64))
        config = self.genai.GenerationConfig(max_new_tokens=num_tokens, ignore_eos=True, do_sample=False)
        result = self.pipeline.generate(self.genai.TokenizedInputs(inputs, mask), config)
        first_s = result.perf_metrics.get_ttft().mean / 1e3
        rest_s = result.perf_metrics.get_tpot().mean / 1e3 * (num_tokens - 1)
        return first_s, rest_s, list(result.tokens[0])
