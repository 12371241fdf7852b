"""What a first tutorial does with Transformers, block by block; run as a program, it prints what came out.

The models come from the hub that HF_ENDPOINT names. `tests/api/test_tutorial_code.py` does the same with
tokenglass and compares. Every loop is written out by hand once, as a reader would write it.
"""

from __future__ import annotations

import json
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.support.tutorial import (
    BERT,
    CHINESE_GPT2,
    MESSAGES,
    NUM_NEW,
    PROMPTS,
    QWEN,
    TEMPERATURE,
    TEXTS,
    TOP_K,
    TOP_P,
)


def tokens(name: str) -> list[dict[str, Any]]:
    """Text to tokens to ids and back, with and without special tokens."""
    tokenizer = AutoTokenizer.from_pretrained(name)
    return [
        {
            "tokens": tokenizer.tokenize(text),
            "ids": tokenizer.encode(text, add_special_tokens=False),
            "with_special": tokenizer.encode(text),
            "decoded": tokenizer.decode(tokenizer.encode(text), skip_special_tokens=True),
        }
        for text in TEXTS
    ]


def loaded(name: str) -> tuple[Any, Any]:
    model: Any = AutoModelForCausalLM.from_pretrained(name, dtype=torch.float32)
    return AutoTokenizer.from_pretrained(name), model.eval()


def generated(tokenizer: Any, model: Any, prompt: str, **settings: Any) -> list[int]:
    """`model.generate`, greedy: the new ids."""
    ids = tokenizer(prompt, add_special_tokens=False, return_tensors="pt").input_ids
    ids = ids.to(torch.long)
    output = model.generate(ids, max_new_tokens=NUM_NEW, do_sample=False, **settings)
    new: list[int] = output[0, ids.shape[1] :].tolist()
    return new


def greedy_by_hand(tokenizer: Any, model: Any, prompt: str) -> list[int]:
    """Logits, argmax, append, repeat; the whole text is computed again each time."""
    ids = tokenizer.encode(prompt, add_special_tokens=False)
    new: list[int] = []
    for _ in range(NUM_NEW):
        logits = model(torch.tensor([ids + new])).logits[0, -1]
        new.append(int(torch.argmax(logits)))
    return new


def next_token(tokenizer: Any, model: Any, prompt: str) -> dict[str, Any]:
    """The next token's distribution: softmax, top-k, top-p and temperature by hand."""
    ids = tokenizer.encode(prompt, add_special_tokens=False)
    logits = model(torch.tensor([ids])).logits[0, -1]
    best = torch.topk(torch.softmax(logits, dim=-1), 5)
    kept, kept_ids = torch.topk(logits / TEMPERATURE, TOP_K)
    ordered, order = torch.sort(torch.softmax(logits, dim=-1), descending=True)
    before = torch.cumsum(ordered, dim=-1) - ordered
    nucleus = order[before < TOP_P]
    return {
        "best": [best.indices.tolist(), best.values.tolist()],
        "top_k": [kept_ids.tolist(), torch.softmax(kept, dim=-1).tolist()],
        "top_p": len(nucleus),
    }


def chatted(tokenizer: Any, model: Any) -> dict[str, Any]:
    """A question through the chat template, greedy under the model's own generation_config.json."""
    text = tokenizer.apply_chat_template(MESSAGES, tokenize=False, add_generation_prompt=True)
    inputs = tokenizer([text], return_tensors="pt")
    output = model.generate(**inputs, max_new_tokens=NUM_NEW, do_sample=False)
    new = output[:, inputs.input_ids.shape[1] :]
    answer = tokenizer.batch_decode(new, skip_special_tokens=True)[0]
    return {"text": text, "ids": inputs.input_ids[0].tolist(), "new": new[0].tolist(), "answer": answer}


def main() -> None:
    found: dict[str, Any] = {"tokens": {name: tokens(name) for name in (QWEN, CHINESE_GPT2, BERT)}}
    for name in (QWEN, CHINESE_GPT2):
        tokenizer, model = loaded(name)
        plain = {"repetition_penalty": 1.0}  # Qwen's generation_config.json has another one
        found[name] = {
            "generate": [generated(tokenizer, model, prompt, **plain) for prompt in PROMPTS],
            "by_hand": [greedy_by_hand(tokenizer, model, prompt) for prompt in PROMPTS],
            "next": [next_token(tokenizer, model, prompt) for prompt in PROMPTS],
        }
        if name == QWEN:
            found["chat"] = chatted(tokenizer, model)
    print(json.dumps(found))


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    main()
