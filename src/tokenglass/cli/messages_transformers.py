"""Chinese for the engine transformers: its options, its errors and its notes."""

# ruff: noqa: E501 - one entry is one line where it can be

from __future__ import annotations

ZH = {
    "who computes: tokenglass (default), or transformers for any causal model and for a GPU": "由谁计算：tokenglass（默认），或 transformers：任何因果模型，也可用 GPU",
    "of transformers: cpu (default), cuda, cuda:1, mps": "用于 transformers：cpu（默认）、cuda、cuda:1、mps",
    "of transformers: type of weights and arithmetic (default: as in the files)": "用于 transformers：权重和运算的类型（默认：和文件里一样）",
    "of transformers: let Python files of the model run. They can do whatever you can": "用于 transformers：让模型自带的 Python 文件运行。你能做的事它们都能做",
    "must be tokenglass or transformers, not {value}": "要是 tokenglass 或 transformers，不能是 {value}",
    "is a setting of the engine tokenglass": "是引擎 tokenglass 的设置",
    "is a setting of the engine transformers": "是引擎 transformers 的设置",
    "Leave it out": "请去掉",
    "must be tokenglass here: it is our own cache that is explained": "在这里要是 tokenglass：解释的是我们自己的缓存",
    "Add --engine transformers": "请加上 --engine transformers",
    "{device} is not there: torch {version} sees {there}": "没有 {device}：torch {version} 看到的有 {there}",
    "A GPU needs the build of torch that is made for it: https://pytorch.org/get-started": "GPU 需要为它编译的 torch：https://pytorch.org/get-started",
    "{device} has not enough memory for this text": "{device} 的内存放不下这段文字",
    "Take a shorter one, a smaller model, or --dtype bf16": "请用短一些的文字、小一些的模型，或 --dtype bf16",
    "{model} brings its own Python code ({name}), and code of a model is never run unasked: it can do whatever you can": "{model} 带有自己的 Python 代码（{name}）；模型的代码不经同意绝不运行：你能做的事它都能做",
    "Read it, and if you trust it add --trust-remote-code": "请先读一遍，信得过再加上 --trust-remote-code",
    "this is an encoder with a decoder, no causal model": "这是编码器加解码器，不是因果模型",
    "scores depend on the tokens after them: no causal model": "分数取决于后面的词元：不是因果模型",
    "is missing, one of {n}": "不存在，共缺 {n} 个",
    "it cannot be loaded: {reason}": "不能载入：{reason}",
    "{name} cannot be used here without a tokenizer.json": "没有 tokenizer.json，{name} 在这里用不了",
    "{model} by Transformers {version} on {device} in {dtype}": "{model}，由 Transformers {version} 计算，设备 {device}，{dtype}",
    "the tokenizer is made by Transformers ({name})": "分词器由 Transformers 构建（{name}）",
}
