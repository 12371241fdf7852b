"""The Chinese of `step.py`; what it shares with `next.py` stands in `messages_next.py`."""

from __future__ import annotations

ZH = {
    "one token at a time by hand: take the draw, another token, or go back": (
        "手动逐个选词元：取抽中的、换一个，或退回"
    ),
    "One token at a time by hand.": "手动逐个选择词元。",
    "Enter takes →, N takes N, #ID any token; b back, r run on, q quit, ? help": (
        "回车取 → 所指，数字取该项，#id 取任意词元；b 退回，r 继续到底，q 退出，? 帮助"
    ),
    ". Commands may come from a pipe, one on each line.": "。命令也可以由管道给出，每行一条。",
    "r runs on for at most N tokens (default: 256)": "r 最多继续 N 个词元（默认：256）",
    "step reads its commands from stdin": "step 从标准输入读取命令",
    'Give the prompt as an argument: step "Hello"': '请把提示词作为参数给出：step "你好"',
    "line {n} of the commands: {what}": "命令第 {n} 行：{what}",
    "{end} ends the answer here; b goes back, q quits": "{end} 在此结束答案；b 退回，q 退出",
    "the context window of {n} is full; b goes back": "{n} 个词元的上下文窗口已满；b 退回",
    "drawn from": "抽取用",
    "rest": "其余",
    "token {n}, entropy {bits} bits": "第 {n} 个词元，熵 {bits} 比特",
    "(nothing taken yet)": "（还没有选词元）",
    "cannot be taken: the context window is full": "取不了：上下文窗口已满",
    "cannot run on: the answer has ended": "不能继续：答案已经结束",
    "b goes back": "b 退回",
    "must be from 1 to {n}": "要在 1 到 {n} 之间",
    "#ID takes any token": "#id 取任意词元",
    "{n} goes back into the prompt; {taken} are taken": "{n} 会退到提示词里；目前选了 {taken} 个",
    "{n} tokens taken in {passes} forward passes": "已选 {n} 个词元，前向计算 {passes} 次",
}
