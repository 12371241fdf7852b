"""The Chinese of `chat.py`, `chat_session.py` and `chat_commands.py`."""

from __future__ import annotations

ZH = {
    "talk with a model, turn by turn": "与模型多轮对话",
    "Talk with a model on this machine, turn by turn.": "在这台机器上与模型多轮对话。",
    "Lines that begin with / are commands (/help lists them); // begins a message with a slash. Ctrl-C stops "
    "an answer and keeps what was said; Ctrl-D ends the chat.": (
        "以 / 开头的行是命令（/help 列出全部）；消息要以斜杠开头时写 //。"
        "Ctrl-C 停止作答并保留已说的内容；Ctrl-D 结束对话。"
    ),
    "of one answer (default: %(default)s)": "每个答案的上限（默认：%(default)s）",
    "one JSON object for each answer, on a line of its own": "每个答案一行 JSON 对象",
    "{model}, window of {window} tokens. /help lists the commands": (
        "{model}，上下文窗口 {window} 个词元。/help 列出命令"
    ),
    "/quit or Ctrl-D ends the chat": "/quit 或 Ctrl-D 结束对话",
    "the line is not UTF-8 and was left out": "这一行不是 UTF-8，已略过",
    "line {n} has more than {mb} MB and was left out": "第 {n} 行超过 {mb} MB，已略过",
    "line {n} is not UTF-8 at byte {byte} and was left out": "第 {n} 行在第 {byte} 字节处不是 UTF-8，已略过",
    "Give it plain text: tokenglass run --raw": "请给它纯文本：tokenglass run --raw",
    "the same settings give the same answer; /params temperature=0.7 seed=none varies it": (
        "设置相同，答案也相同；/params temperature=0.7 seed=none 会使它变化"
    ),
    "stopped before the first token: the message was not kept": "在第一个词元之前停止：这条消息没有保留",
    "{used} of {window} tokens | prompt {cached} cached + {computed} computed, {ms} ms | {rate} tokens/s": (
        "已用 {used}/{window} 词元 | 提示词 {cached} 个在缓存 + {computed} 个新算，{ms} 毫秒 | "
        "每秒 {rate} 词元"
    ),
    "the window is full: /clear begins a new chat, /save FILE keeps this one": (
        "窗口已满：/clear 开始新对话，/save FILE 保存当前对话"
    ),
    "stopped; what was said stays in the chat": "已停止；已说的内容留在对话中",
    "cut off at {n} tokens; /params max_tokens=N allows more": (
        "在 {n} 个词元处截断；/params max_tokens=N 可以放宽"
    ),
    "there is nothing to ask again": "没有可以再问的内容",
    "Say something first": "请先说点什么",
    "the chat would have {n} tokens and the context window holds {window}": (
        "这段对话将有 {n} 个词元，而上下文窗口只能容纳 {window} 个"
    ),
    "/clear begins a new one, /save FILE keeps this one": "/clear 开始新对话，/save FILE 保存当前对话",
    "what the model is told before everything; without TEXT: shows it": (
        "系统消息，放在最前面；不带 TEXT：显示它"
    ),
    "another answer to the last message": "对上一条消息再答一次",
    "shows the settings; /params temperature=0.7 top_p=0.9 changes them": (
        "显示设置；/params temperature=0.7 top_p=0.9 修改设置"
    ),
    "what fills the context window": "上下文窗口里有什么",
    "begins a new chat; the system message stays": "开始新对话；系统消息保留",
    "writes the chat as JSON": "把对话写成 JSON",
    "goes on with a saved chat": "接着保存过的对话继续",
    "ends the chat, like Ctrl-D (Ctrl-C only stops an answer)": "结束对话，同 Ctrl-D（Ctrl-C 只停止作答）",
    "no system message of yours (the model's template may have its own)": (
        "你没有设置系统消息（模型的模板可能自带一条）"
    ),
    "what the template adds": "模板添加的部分",
    "{used} of {window} tokens ({percent}%)": "{window} 个词元，已用 {used} 个（{percent}%）",
    "/help lists them; // begins a message with a slash": "/help 列出全部；消息要以斜杠开头时写 //",
    "Did you mean {near}?": "是不是想写 {near}？",
    "there is no setting {name}": "没有 {name} 这个设置",
    "There are {names}": "可选 {names}",
    "Like this: /params {name}=1": "例如：/params {name}=1",
    "must be a number, not {value}": "要是一个数，不能是 {value}",
    "{path} exists already": "{path} 已经存在",
    "Choose another name": "请换一个名字",
    "cannot write {path}: {reason}": "不能写 {path}：{reason}",
    "cannot read {path}: {reason}": "不能读 {path}：{reason}",
    "{path} is no saved chat": "{path} 不是保存的对话",
    "{path} is no saved chat: messages[{i}] has no usable {key}": "{path} 不是保存的对话："
    "messages[{i}] 没有可用的 {key}",
    "/save FILE writes one": "/save FILE 可以写一个",
    "{path} has a system message that is not the first": "{path} 里的系统消息不在最前面",
    "{command} needs the name of a file": "{command} 后面要有文件名",
    "{n} messages in {path}": "{path} 中有 {n} 条消息",
}
