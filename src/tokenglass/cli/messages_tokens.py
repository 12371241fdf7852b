"""The Chinese of `tokens.py`, `tokens_view.py` and `vocab.py`."""

from __future__ import annotations

ZH = {
    "a text as a model sees it: its tokens, their bytes, and what they cost": (
        "模型眼中的文字：词元、字节，以及花费"
    ),
    "A text as a model sees it: its tokens, and what they cost.": "模型眼中的文字：有哪些词元，花费多少。",
    "a text, or the path of a file; - or nothing: stdin": "一段文字，或文件路径；- 或不写：读标准输入",
    "path of a model or a tokenizer's file, or a name; several: side by side": (
        "模型或分词器文件的路径，或模型名；可给多个，并排显示"
    ),
    "{name} was not counted: {why}": "没有为 {name} 计数：{why}",
    "{name}: rule of thumb: {few} to {most} tokens": "{name}：经验估计：{few} 到 {most} 个词元",
    "the argument is the text, never a file": "参数就是文字，不当作文件",
    "as one turn of a chat, by the model's template": "按模型的模板，作为一轮聊天",
    "control tokens written in the text count as such": "文字中写出的控制词元按控制词元处理",
    "list N tokens (a terminal: 100; else, and with 0: all)": (
        "列出 N 个词元（终端：100；其他情况及 0：全部）"
    ),
    "look up tokens by text, /regex/, bytes (0xE5A4A9) or id (#123)": (
        "在词表中按文字、/正则/、字节（0xE5A4A9）或 id（#123）查找"
    ),
    "list the special tokens": "列出特殊词元",
    "one JSON object with everything": "输出包含全部内容的一个 JSON 对象",
    "reading the file {path} (--text: the words themselves)": "读取文件 {path}（--text：把参数当作文字）",
    "{name} does not give this text back byte for byte: some of it is dropped or composed": (
        "{name} 不能逐字节还原这段文字：有些内容被丢弃或合并了"
    ),
    "id": "id",
    "token": "词元",
    "bytes": "字节",
    "characters": "字符",
    "special": "特殊",
    "… {n} more (--limit 0 lists all, --json holds them)": (
        "…… 还有 {n} 个（--limit 0 全部列出，--json 包含全部）"
    ),
    "tokens of the text": "文字的词元数",
    "with special tokens, raw": "含特殊词元，原样续写",
    "with special tokens, as a chat": "含特殊词元，作为聊天",
    "characters a token": "每个词元的字符数",
    "share of the window": "占上下文窗口",
    "{share} of {window}": "{window} 的 {share}",
    "{chars} characters, {bytes} bytes": "{chars} 个字符，{bytes} 字节",
    "rule of thumb: {few} to {most} tokens": "经验估计：{few} 到 {most} 个词元",
    "(an estimate, no count: 3-4 English or 1-2 Chinese characters a token)": (
        "（估计值，并非计数：每个词元约 3-4 个英文字符或 1-2 个汉字）"
    ),
    "Han": "汉字",
    "Latin": "拉丁字母",
    "digits": "数字",
    "emoji": "表情符号",
    "kana": "假名",
    "Hangul": "谚文",
    "spaces": "空白",
    "punctuation": "标点",
    "other": "其他",
    "{n} of {total} tokens": "{total} 个词元中的 {n} 个",
    ", {n} shown (--limit 0 shows all)": "，显示 {n} 个（--limit 0 显示全部）",
    "{n} unused": "{n} 个未使用",
    "{n} of {total} tokens are special": "{total} 个词元中有 {n} 个特殊词元",
}
