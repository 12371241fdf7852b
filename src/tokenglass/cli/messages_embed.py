"""The Chinese of `embed.py`."""

from __future__ import annotations

ZH = {
    "texts as vectors: the model's hidden states, pooled": "把文字变成向量：模型的隐藏状态，经过池化",
    "Texts as vectors: the model's hidden states, pooled.": "把文字变成向量：模型的隐藏状态，经过池化。",
    "texts; - or nothing: each line of stdin is one": "文字；- 或不写：标准输入每行一段",
    "mean of all positions (default), the last, or the first": "全部位置的平均（默认）、最后一个或第一个",
    "leave the vectors as long as they are": "不把向量缩放到长度 1",
    "a JSON line for each (default), one JSON object as OpenAI's, or a numpy file": (
        "每段一行 JSON（默认）、一个与 OpenAI 相同的 JSON 对象，或 numpy 文件"
    ),
    "write to this file": "写到这个文件",
}
