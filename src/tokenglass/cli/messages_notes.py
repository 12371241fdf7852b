"""The Chinese of `notes.py`."""

from __future__ import annotations

ZH = {
    "what was run and measured here: kept on this machine, sent nowhere": (
        "这台机器上运行和测量过什么：只留在本机，不发送"
    ),
    "also say when the run could not be noted": "无法写下运行记录时也说一声",
    "keep the prompt in the local notes (tokenglass notes)": "在本地记录里保留提示词（tokenglass notes）",
    "cannot remove {path}: {reason}": "不能删除 {path}：{reason}",
    "{n} notes removed": "已删除 {n} 条记录",
    "{n} lines are no notes and were left out": "有 {n} 行不是记录，已略过",
    "no notes yet: every run and bench adds one line to {path}": (
        "还没有记录：每次 run 和 bench 会在 {path} 中加一行"
    ),
    "{shown} of {total} notes in {path}": "{path} 中的 {total} 条记录，显示 {shown} 条",
    "no note was written: {reason}": "没有写下记录：{reason}",
    "What was run and measured here: one line for every run and bench.": (
        "这台机器上运行和测量过什么：每次 run 和 bench 一行。"
    ),
    "The notes stay on this machine: nothing is sent anywhere. They hold numbers and a hash of the "
    "answer, and no prompts unless asked (run --with-prompts, or TOKENGLASS_NOTES=prompts). "
    "TOKENGLASS_NOTES=0 writes none.": (
        "记录只留在这台机器上，不会发送到任何地方。其中只有数字和答案的哈希；"
        "除非要求（run --with-prompts 或 TOKENGLASS_NOTES=prompts），不含提示词。"
        "TOKENGLASS_NOTES=0 则不写记录。"
    ),
    "the newest N (table: 20; CSV and JSON: all)": "最新的 N 条（表格：20 条；CSV 和 JSON：全部）",
    "comma-separated, for a spreadsheet": "逗号分隔，供电子表格使用",
    "one JSON object on each line": "每行一个 JSON 对象",
    "remove all notes": "删除全部记录",
    "time": "时间",
    "what": "命令",
    "model": "模型",
    "in": "输入",
    "out": "输出",
    "decode/s": "解码/秒",
    "seed": "种子",
}
