"""Chinese for the overview, argparse's own words, `run` with its last line, and downloads."""

# ruff: noqa: E501 - one entry is one line where it can be

from __future__ import annotations

ZH = {
    # tokenglass --help
    "usage: tokenglass COMMAND [options]": "用法：tokenglass 命令 [选项]",
    "A glass-box LLM engine: fast enough to serve, clear enough to see every next token.": "玻璃盒 LLM 引擎：快到可以对外服务，清楚到能看见每一个下一个词元。",
    "tokenglass COMMAND --help says what a command takes; tokenglass --version: which one.": "tokenglass 命令 --help 列出一个命令的选项；tokenglass --version 显示版本。",
    "Everywhere: --lang en or --lang zh, or TOKENGLASS_LANG=zh (中文).": "随处可用：--lang en（英文）、--lang zh，或者 TOKENGLASS_LANG=zh。",
    "answer a prompt, or continue a text, with a model on this machine": "用本机的模型回答提示词，或者续写文字",
    "measure this machine: tokens per second and the share of what it allows": "测量这台机器：每秒词元数，以及达到机器极限的几成",
    "there is not enough memory. A smaller --context or model needs less": "内存不够。减小 --context 或换更小的模型",
    "the system refused: {reason}": "系统拒绝了：{reason}",
    # what the chat template is given (prompt.py)
    "what the chat template is given": "交给聊天模板的内容",
    "tools it may call: a JSON list of their schemas": "模型可以调用的工具：由其 schema 组成的 JSON 列表",
    "documents to answer from: a JSON list of objects": "回答所依据的文档：由对象组成的 JSON 列表",
    "further variables of the template, like '{\"enable_thinking\": false}'": "模板的其他变量，例如 '{\"enable_thinking\": false}'",
    # a prompt longer than the window (prompt.py)
    "a prompt longer than the window": "提示词比窗口长时",
    "leave out its oldest part or its middle, and say how much (default: refuse it)": "略去最早的部分或中间，并说明略去多少（默认：拒绝）",
    "tokens kept free for the answer (default: --max-tokens)": "给答案留出的词元数（默认：--max-tokens）",
    "{n} tokens of the prompt did not fit and were left out": "提示词有 {n} 个词元放不下，已略去",
    # argparse
    "usage: ": "用法：",
    "positional arguments": "参数",
    "options": "选项",
    "show this help message and exit": "显示这段帮助后退出",
    "language of help and messages (default: TOKENGLASS_LANG, or en)": "帮助和提示的语言（默认：TOKENGLASS_LANG，否则 en）",
    # run --help
    "Answer a prompt, or continue a text, with a model on this machine.": "用本机的模型回答提示词，或者续写文字。",
    "what to answer; - or nothing: read it from stdin": "要回答的内容；写 - 或不写：从标准输入读",
    "a .gguf file, a folder, or a name (default: %(default)s)": ".gguf 文件、文件夹或者名字（默认：%(default)s）",
    "continue the text as it is, without the model's chat template": "原样续写文字，不用模型的聊天模板",
    "what the model is told before the prompt": "在提示词之前对模型说的话",
    "how each token is chosen": "怎样选每个词元",
    "0 takes the best token (default); 0.7 varies": "0 总取最好的词元（默认）；0.7 有变化",
    "choose among the K best tokens; 0: among all (default)": "只在最好的 K 个词元里选；0：在全部里选（默认）",
    "among the best that reach this sum; 1: all (default)": "只在概率之和达到它的最好的词元里选；1：全部（默认）",
    "the same seed gives the same answer; drawn when not given": "种子相同，答案就相同；不写则随机取一个",
    "where the answer ends": "答案在哪里结束",
    "at most N tokens (default: %(default)s)": "最多 N 个词元（默认：%(default)s）",
    "end before this text or control token; may be given again": "在这段文字或这个控制词元之前结束；可以写多次",
    "at least N tokens, whatever the model says": "至少 N 个词元，不管模型想在哪里结束",
    "go on where the model ends its answer": "模型说完了也继续",
    "how it runs": "怎样运行",
    "tokens to keep room for (default: what the model was made for)": "为多少词元留地方（默认：模型设计的长度）",
    "default: the processors this process may use": "默认：本进程能用的处理器数",
    "int8: fast (default); f32: exact": "int8：快（默认）；f32：精确",
    "type of the cached keys and values (default: f16)": "缓存的键和值的类型（默认：f16）",
    "one JSON object at the end, with all settings and timings": "最后输出一个 JSON 对象，含全部设置和计时",
    "The answer goes to stdout, everything else to stderr. At temperature 0 the answer is always the same.": "答案写到标准输出，其余写到标准错误。温度为 0 时，答案总是一样。",
    # run, before and after the answer
    "chat, by the model's own template (--raw: the text as it is)": "聊天，用模型自己的模板（--raw：原样续写）",
    "raw text, no chat template": "原样文字，不用聊天模板",
    "--top-k, --top-p and --seed change nothing at temperature 0: add --temperature 0.7": "温度为 0 时 --top-k、--top-p 和 --seed 不起作用：请加上 --temperature 0.7",
    "WordPiece loses capitals, accents, spaces and unknown words ([UNK]); the model reads {seen}": "WordPiece 会丢掉大小写、重音、空格和词表里没有的词（[UNK]）；模型读到的是 {seen}",
    "this model has no end token: the answer ends by --max-tokens or --stop": "这个模型没有结束词元：答案由 --max-tokens 或 --stop 结束",
    "this model needs {n:.1f} tokens for each Chinese character and can hardly write Chinese: {instead}": "这个模型每个汉字要用 {n:.1f} 个词元，几乎不会写中文：{instead}",
    "qwen2.5-0.5b-instruct was trained on it (tokenglass models pull qwen2.5-0.5b-instruct)": "qwen2.5-0.5b-instruct 学过中文（tokenglass models pull qwen2.5-0.5b-instruct）",
    "{prompt} prompt + {output} output tokens ({reason}) in {passes} passes": "提示 {prompt} + 输出 {output} 个词元（{reason}），前向计算 {passes} 次",
    "stop": "说完了",
    "length": "到上限",
    "interrupted": "被中断",
    "nothing decoded": "没有解码",
    "first token {ms:.0f} ms | prefill {prefill:.0f}, decode {decode}, overall {s:.0f} tokens/s": "首词元 {ms:.0f} 毫秒 | 每秒词元：预填充 {prefill:.0f}，解码 {decode}，总体 {s:.0f}",
    "{rate:.1f} GB/s, {share:.0%} of this machine's {limit:.1f}": "{rate:.1f} GB/s，是本机 {limit:.1f} 的 {share:.0%}",
    # downloads
    "downloading {name}": "正在下载 {name}",
    "unpacking {name}": "正在解包 {name}",
    "another process is fetching {name}, waiting for it": "另一个进程正在取 {name}，等它完成",
    ": {done:.0f} of {total:.0f} MB": "：{done:.0f} / {total:.0f} MB",
}
