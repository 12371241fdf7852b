"""The Chinese of `score.py` and `perplexity.py`."""

from __future__ import annotations

ZH = {
    "how likely a text is, token by token; which continuation is the likelier": (
        "一段文字有多可能，逐个词元；哪个续写更可能"
    ),
    "How likely a text is, token by token; which continuation is the likelier.": (
        "一段文字有多可能，逐个词元；哪个续写更可能。"
    ),
    "the perplexity of a text file, and its bits per byte": "一个文本文件的困惑度，以及每字节比特数",
    "The perplexity of a text file, and its bits per byte.": "一个文本文件的困惑度，以及每字节比特数。",
    "score only this, behind the text; again for others, to compare them": (
        "只给接在文字后面的这一段打分；可多次给出，以便比较"
    ),
    "in --json: the N best tokens at each place too": "--json 里也列出每个位置最好的 N 个词元",
    "surprisal": "意外程度",
    "continuation": "续写",
    "a token": "每词元",
    "tokens": "词元",
    "share": "占比",
    "{n} tokens scored: logprob {total}, perplexity {perplexity}, {bits} bits per byte": (
        "{n} 个词元已打分：对数概率 {total}，困惑度 {perplexity}，每字节 {bits} 比特"
    ),
    "a text file in UTF-8; - for stdin": "UTF-8 文本文件；- 表示标准输入",
    "tokens of one window (default: the context window)": "一个窗口的词元数（默认：上下文窗口）",
    "tokens from one window to the next (default: they do not overlap)": (
        "相邻窗口相隔的词元数（默认：互不重叠）"
    ),
    "stopped after window {n} of {all}": "在第 {n} 个窗口之后停止，共 {all} 个",
    "window {n} of {all}: perplexity {value}": "窗口 {n} / {all}：困惑度 {value}",
    "perplexity {perplexity}, {bits} bits per byte; {n} tokens predicted": (
        "困惑度 {perplexity}，每字节 {bits} 比特；预测了 {n} 个词元"
    ),
}
