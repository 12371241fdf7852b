"""The Chinese of `next.py` and `looking.py`."""

from __future__ import annotations

ZH = {
    "the distribution of the next token: logit, probability, entropy": "下一个词元的分布：logit、概率、熵",
    "The distribution of the next token: logit, probability, entropy.": "下一个词元的分布：logit、概率、熵。",
    "the text before the token": "该词元之前的文字",
    "the text as it is, without the model's chat template": "原样用这段文字，不用模型的聊天模板",
    "show the N best tokens (default: 10)": "显示最好的 N 个词元（默认：10）",
    "JSON for programs": "供程序读取的 JSON",
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
    "rank": "名次",
    "token": "词元",
    "id": "id",
    "logit": "logit",
    "sum": "累计",
    "rest, {n} tokens": "其余 {n} 个词元",
}
