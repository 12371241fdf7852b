"""The Chinese of `explain_cache.py`."""

from __future__ import annotations

ZH = {
    "what keeping keys and values saves: two loops, side by side": "缓存键和值能省多少：两种循环并排比较",
    "What keeping keys and values saves, measured here.": "缓存键和值能省多少，在这台机器上测量。",
    "Without a cache the time for each token grows with the text, so doubling --max-tokens takes about four "
    "times as long. The best token is taken each time, and end tokens do not end it.": (
        "没有缓存时，每个词元的时间随文字增长，所以 --max-tokens 加倍大约要四倍时间。"
        "每次都取最好的词元，结束词元不会使它结束。"
    ),
    "the text to continue; - or nothing: read it from stdin": "要续写的文字；- 或不写：从标准输入读取",
    "tokens to make (default: %(default)s)": "生成多少个词元（默认：%(default)s）",
    "write the plot as a picture, too": "把图也写成图片文件",
    "one JSON object with the times of every single token": "一个 JSON 对象，含每个词元的时间",
    "{p} prompt tokens, {n} tokens after them": "提示词 {p} 个词元，其后 {n} 个词元",
    "of {n} and the {p} of the prompt are more than the context window's {window}": (
        "要的 {n} 个词元加上提示词的 {p} 个，超过了上下文窗口的 {window} 个"
    ),
    "tokens": "词元",
    "without cache": "无缓存",
    "with cache": "有缓存",
    "ratio": "倍数",
    "last token alone": "只看末一个词元",
    "tokens/s": "词元/秒",
    "ten times as fast from {n} tokens on": "从 {n} 个词元起快十倍",
    "tenfold was not reached: {ratio} times at {n} tokens": "没有达到十倍：{n} 个词元时是 {ratio} 倍",
    "yes": "是",
    "NO: this is a bug, please report it": "否：这是程序错误，请报告",
    "forward passes: {naive} without, {cached} with": "前向计算：无缓存 {naive} 次，有缓存 {cached} 次",
    "rows computed: {naive} without ({sums})": "计算的行：无缓存 {naive}（{sums}）",
    "               {cached} with ({news})": "          有缓存 {cached}（{news}）",
    "cache: 2 (K and V) x {layers} layers x {kv_heads} KV heads x {head_dim} values "
    "x {value_bytes:g} bytes": (
        "缓存：2（K 和 V）x {layers} 层 x {kv_heads} 个 KV 头 x {head_dim} 个值 x {value_bytes:g} 字节"
    ),
    "       = {bytes_per_token} bytes for each token, {bytes} for {tokens}": (
        "      = 每个词元 {bytes_per_token} 字节，{tokens} 个共 {bytes} 字节"
    ),
    "same tokens: {same}": "词元相同：{same}",
    "milliseconds for each token: {a} without, {b} with cache": "每个词元的毫秒数：{a} 无缓存，{b} 有缓存",
    "milliseconds for each token": "每个词元的毫秒数",
    "the plot is in {path}": "图在 {path}",
}
