"""The Chinese of `bench.py` and `bench_compare.py`."""

# ruff: noqa: E501 - one entry is one line where it can be

from __future__ import annotations

ZH = {
    "Measure this machine: tokens per second and the share of what it allows.": "测量这台机器：每秒词元数，以及达到机器极限的几成。",
    "tokenglass bench compare A B: two files of --json results, and which differences are only noise. Prefill is held against the int8 peak of the processor, decoding against the speed of memory.": "tokenglass bench compare A B：比较两个 --json 结果文件，指出哪些差别只是噪声。预填充与处理器的 int8 峰值相比，解码与内存速度相比。",
    "measure these too, in turns: llama.cpp, transformers, openvino": "同时轮流测量这些：llama.cpp、transformers、openvino",
    "only these: prefill, decode, rows, cold": "只测这些：prefill（预填充）、decode（解码）、rows（多路）、cold（冷启动）",
    "longer prompts, deeper texts, 5 rounds: some minutes": "更长的提示词，更深的上下文，5 轮：要几分钟",
    "lengths of the prompts": "提示词的各个长度",
    "tokens that stand before those that are decoded": "解码之前已有的词元数",
    "how many requests step together": "几个请求一起前进",
    "how often everything is measured (default: 3)": "每项测量几轮（默认：3）",
    "default: one for each core that may be used": "默认：能用的核每个一个",
    "one JSON line with every single value, commit and machine": "输出一行 JSON，含每个数值、提交和机器",
    "round {i} of {n}": "第 {i} 轮，共 {n} 轮",
    "llama.cpp makes its Q4_0 of {name}": "llama.cpp 正在把 {name} 转成它的 Q4_0",
    "llama.cpp cannot make a Q4_0 of {name}: only the file as it is": "llama.cpp 无法把 {name} 转成 Q4_0：只测原文件",
    "{model}, {n} threads, {isa}, {cpu}": "{model}，{n} 个线程，{isa}，{cpu}",
    "median (min-max) of {rounds} rounds; {decode} tokens decoded; cold start: new process to first token; sha256 {sha256}": "{rounds} 轮的中位数（最小-最大）；每次解码 {decode} 个词元；冷启动：从新进程到首词元；sha256 {sha256}",
    "{name} ({version}): {how}; ratio: ours / theirs": "{name}（{version}）：{how}；比值：我们 / 对方",
    # bench compare
    "Two results of bench --json: what changed, and what is only noise.": "比较两个 bench --json 的结果：什么变了，什么只是噪声。",
    "the earlier result; of several lines the last": "较早的结果；有多行时取最后一行",
    "the later one": "较晚的结果",
    "also when machine or model differ": "机器或模型不同也比较",
    "not of one kind: {difference}": "不是同一类结果：{difference}",
    "before": "之前",
    "after": "之后",
    "ratio": "倍数",
    "verdict": "结论",
    "within noise": "在噪声之内",
    "better": "变好",
    "worse": "变差",
    "commits {before} and {after}": "提交 {before} 与 {after}",
}
