"""Chinese for what is said of tokenizer files, part of `messages_errors.py`; its head says how the keys work."""

# ruff: noqa: E501 - one entry is one line where it can be

from __future__ import annotations

ZH = {
    "the end token {n} is not in the vocabulary of {total} tokens: it is ignored": "结束词元 {n} 不在词表里（共 {total} 个词元），不予理会",
    "{name}.tiktoken is not here and downloads are switched off": "这里没有 {name}.tiktoken，而下载已关闭",
    "what {host} sent is not {name}.tiktoken": "{host} 发来的不是 {name}.tiktoken",
    "its array is longer than the table": "其中的数组比整张表还长",
    "the folder has none of {names}": "文件夹里没有 {names} 中的任何一个",
    "cannot be read: {reason}": "无法读取：{reason}",
    "{n} tokens belong to no encoding we know, and the file does not say how words are cut": "{n} 个词元不属于任何已知的编码，而文件没有写明怎样切词",
    "a byte has no token": "有一个字节没有对应的词元",
    "two tokens have the same rank, or one is below 0": "两个词元的次序相同，或有一个小于 0",
    "is no token in base64 with its rank": "不是 base64 的词元加上它的次序",
    "a number does not end": "有一个数没有结尾",
    "is no SentencePiece model of kind unigram or BPE": "不是 unigram 或 BPE 的 SentencePiece 模型",
    "one has an unknown kind": "有一个的种类不认识",
    "a score is no float32": "有一个分数不是 float32",
    "a text has another type": "有一段文字的类型不对",
    "one is not UTF-8": "有一个不是 UTF-8",
    "a field of {n} bytes has {left} left": "一个字段要 {n} 字节，只剩 {left} 字节",
    "wire type {n} is not one of this format": "这种格式没有类型 {n}",
    "an entry has no content or no id": "有一项缺少 content 或 id",
    "has the id {n} and only {size} tokens": "有 id {n}，却只有 {size} 个词元",
    "an entry is no [text, score]": "有一项不是 [文字, 分数]",
    "the package tokenizers refuses it: {reason}": "tokenizers 包拒绝了它：{reason}",
    "is {n}, and there are {size} tokens": "是 {n}，而词元有 {size} 个",
}
