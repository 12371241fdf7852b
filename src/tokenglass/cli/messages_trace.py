"""Chinese for `run --trace`, its options, several answers, and `replay`."""

# ruff: noqa: E501 - one entry is one line where it can be

from __future__ import annotations

ZH = {
    "prefill": "预填充",
    "decode": "解码",
    "run a stored trace again and check every token, or show it": "重跑存下的轨迹，逐个核对词元；也可以只显示",
    # run --help
    "settings for a kind of text (tokenglass presets explains)": "某一类文字的设置（tokenglass presets 有说明）",
    "with at least P times the best one's probability; 0: all": "概率至少是最好者的 P 倍；0：全部",
    "among the most typical that reach this sum; 1: all": "在概率之和达到它的最典型的词元里选；1：全部",
    "above 1: weakens every token seen; 1: off": "大于 1：减弱所有出现过的词元；1：关",
    "taken from tokens of the answer; 0: off": "从答案里已有词元的分数中减去；0：关",
    "the same, for each time they came; 0: off": "同上，按出现次数累计；0：关",
    "added to one token's logit, -100 (never) to 100; may be given again": "加到一个词元的分数上，-100（绝不选）到 100；可以写多次",
    "N answers side by side: seed, seed+1, …": "N 个答案同时生成：种子、种子+1……",
    "how it is watched": "怎样观看",
    "each step on stderr: candidates, probabilities, stages, times": "每一步写到标准错误：候选、概率、各阶段、用时",
    "each step as a line of JSON (tokenglass replay)": "每一步存成一行 JSON（供 tokenglass replay 用）",
    "candidates that a step shows (default: 5)": "每一步显示几个候选（默认：5）",
    "at most N tokens per second; space pauses, q ends": "每秒最多 N 个词元；空格暂停，q 结束",
    "the naive loop: every step computes the whole text again; same answer, much slower": "朴素循环：每一步都把全文重算一遍；答案相同，慢得多",
    # run --trace
    "step {n}  position {position}  id {id}": "第 {n} 步  位置 {position}  id {id}",
    "rank {rank}  surprisal {surprisal:.2f} bits  entropy {entropy:.2f} bits": "第 {rank} 名  惊讶度 {surprisal:.2f} 比特  熵 {entropy:.2f} 比特",
    "bias and penalties first": "先加偏置和惩罚",
    "greedy: the best token, nothing is drawn": "贪心：取最好的词元，不抽取",
    "temperature {temperature:g}": "温度 {temperature:g}",
    "{name} {setting:g} leaves {n} with {mass:.4f} of the mass": "{name} {setting:g} 留下 {n} 个，占概率 {mass:.4f}",
    "raw": "原始",
    "final": "最终",
    "rest": "其余",
    "space pauses, q ends": "空格暂停，q 结束",
    # run -n
    "all answers are the same without randomness: add --temperature 0.7": "没有随机性，答案全都一样：请加上 --temperature 0.7",
    "answer {n} of {total}, seed {seed}": "答案 {n}，共 {total} 个，种子 {seed}",
    "{n} answers, {tokens} output tokens in {seconds:.2f} s, {rate:.0f} tokens/s together": "{n} 个答案，输出 {tokens} 个词元，用 {seconds:.2f} 秒，合计每秒 {rate:.0f} 个",
    # replay
    "Run a stored trace again and check that every token is the same.": "重跑一份存下的轨迹，检查每个词元是否相同。",
    "what run --trace-file wrote": "run --trace-file 写下的文件",
    "path or name (default: the one that the trace names)": "路径或名字（默认：轨迹里写的那个）",
    "print the stored trace, run nothing": "显示存下的轨迹，不运行",
    "one JSON object with the result; with --show the whole trace": "输出一个 JSON 对象，含结果；加 --show 则输出整份轨迹",
    "{file} is not the file of the trace: tokens may differ": "{file} 不是轨迹所用的文件：词元可能不同",
    "all {n} tokens are the same": "{n} 个词元全部相同",
    "token {n} differs: {before} in the trace, {now} now; {equal} before it are the same": "第 {n} 个词元不同：轨迹里是 {before}，现在是 {now}；之前 {equal} 个相同",
}
