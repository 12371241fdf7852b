"""The names, texts and settings of the tutorials' code: for the program with Transformers and for ours."""

from __future__ import annotations

QWEN, CHINESE_GPT2, BERT = (
    "Qwen/Qwen2.5-0.5B-Instruct",
    "uer/gpt2-chinese-cluecorpussmall",
    "bert-base-chinese",
)
TEXTS = [
    "今天天气真好，我们去公园玩。",
    "原子思维",
    "人工智能 AI and machine learning 2024",
    "Hello, 世界! café ☕",
]
PROMPTS = ["今天天气", "从前有一座山，", "The next token"]
MESSAGES = [{"role": "user", "content": "用一句话介绍北京。"}]
NUM_NEW = 20
TEMPERATURE, TOP_K, TOP_P = 0.8, 10, 0.9
