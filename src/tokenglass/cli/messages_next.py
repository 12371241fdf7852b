"""The Chinese of `next.py` and `looking.py`."""

from __future__ import annotations

ZH = {
    "the distribution of the next token: logit, probability, entropy": "下一个词元的分布：logit、概率、熵",
    "The distribution of the next token: logit, probability, entropy.": "下一个词元的分布：logit、概率、熵。",
    "the text before the token": "该词元之前的文本",
    "path of a .gguf file, or a name (default: {name})": ".gguf 文件的路径或模型名（默认：{name}）",
    "the text as it is, without the model's chat template": "按原文，不套用模型的对话模板",
    "what the model is told before the prompt": "在提示词之前告诉模型的话",
    "show the N best tokens (default: 10)": "显示最好的 N 个词元（默认：10）",
    "JSON for programs": "供程序读取的 JSON",
    "how it runs": "如何运行",
    "tokens to keep room for": "预留多少个词元的位置",
    "default: the processors this process may use": "默认：本进程可用的处理器数",
    "int8: fast (default); f32: exact": "int8：快（默认）；f32：精确",
    "type of the cached keys and values (default: f16)": "缓存中键和值的类型（默认：f16）",
    "chat, by the model's own template (--raw: the text as it is)": "对话，按模型自己的模板（--raw：按原文）",
    "raw text, no chat template": "原文续写，不用对话模板",
    "show this token too, wherever it stands; may be given again": "也显示这个词元，无论排在哪里；可多次给出",
    "side by side, exact from one forward pass: 0.2,0.7,1.5": "并排显示，一次前向计算即得精确值：0.2,0.7,1.5",
    "raw": "原始",
    "cut {temperature}": "截断 {temperature}",
    "logits [{n}]: one for each token of the vocabulary": "logits [{n}]：词表中每个词元一个",
    "; {n} more rows belong to no token": "；另有 {n} 行不属于任何词元",
    "entropy {title}: {nats} nats = {bits} bits": "熵 {title}：{nats} 奈特 = {bits} 比特",
    "{title}: {name} {setting} leaves {n} tokens and {mass} of the mass": (
        "{title}：{name} {setting} 留下 {n} 个词元，占概率的 {mass}"
    ),
    "rank": "排名",
    "token": "词元",
    "id": "编号",
    "logit": "logit",
    "sum": "累计",
    "rest, {n} tokens": "其余 {n} 个词元",
}
