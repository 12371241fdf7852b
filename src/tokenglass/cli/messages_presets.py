"""Chinese for `presets`."""

# ruff: noqa: E501 - one entry is one line where it can be

from __future__ import annotations

ZH = {
    "sampling settings for four kinds of text, and why": "四类文字的采样设置，以及为什么",
    "Sampling settings for four kinds of text, and why.": "四类文字的采样设置，以及为什么。",
    "one JSON object: numbers and reasons by name": "输出一个 JSON 对象：各预设的数值和理由",
    "run --preset NAME takes one; an option given beside it wins: --preset chat --temperature 0.5": "用 run --preset 名字 选一个；同时写出的选项优先：--preset chat --temperature 0.5",
    "Most places in a program have one right token, and one wrong token breaks all of it. From 0.1 to 0.3 the best token nearly always wins: at 0.2 a token with half the best one's probability is drawn 1/32 as often. Not quite 0, so that another seed gives another attempt, and loops can be left.": "程序里大多数位置只有一个词元是对的，错一个就全错。0.1 到 0.3 之间几乎总是最好的词元胜出：温度 0.2 时，概率只有最好者一半的词元，被抽中的机会是它的 1/32。不取 0，是为了换个种子能再试一次，也不至于陷在重复里出不来。",
    "A step of a calculation is right or wrong, so the lowest setting that still varies, 0.1 of the range 0.1 to 0.3: half the probability is drawn 1/1024 as often. Nothing needs to be cut off, as the tail has no weight left. Several answers with different seeds can vote (-n 5).": "计算的每一步非对即错，所以取仍有变化的最低值：0.1 到 0.3 中的 0.1。概率只有一半的词元，被抽中的机会是 1/1024。尾部已没有分量，不必再截。可以用不同种子生成几个答案来投票（-n 5）。",
    "Many sentences answer a question well. About 0.7 the wording varies and the facts mostly stay; top-p 0.95 removes the long tail, where thousands of unlikely tokens together are likely enough to spoil a sentence.": "一个问题有许多句子都答得好。0.7 左右，说法有变化，事实大多不变；top-p 0.95 去掉长尾：那里有成千上万个不太可能的词元，加在一起却足以毁掉一句话。",
    "A story should not be the most likely one. From 0.7 to 1.0 the model's own variety comes out (1.0 is what it learnt); more variety gives the tail more weight, so top-p is needed, and tighter than in chat: 0.9.": "故事不该是最可能的那一个。0.7 到 1.0 让模型自己的多样性显出来（1.0 就是它学到的样子）；越多样，尾部分量越重，所以需要 top-p，而且要比聊天时更紧：0.9。",
}
