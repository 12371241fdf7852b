"""Claims of tutorials about next-token prediction, measured: writes docs/en/claims.md and docs/zh/claims.md.

    python bench/claims.py [MODEL]

`CLAIMS` depend on the model alone: the engine gives the same bits on every machine, and a test measures them
again. `SPEED_CLAIMS` depend on the machine too; their numbers are rounded, and the page names the machine,
which should do nothing else meanwhile. How the pages look: `claims_page.py`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from statistics import median

import numpy as np

import tokenglass as tg
from claims_page import Claim, Result, page
from tokenglass.bench.machine import cpu_model

DOCS = Path(__file__).parents[1] / "docs"
ENGLISH = (
    "The old harbour lay quiet in the early morning, and only a few fishermen were already at work. They "
    "mended their nets, drank strong coffee, and talked about the weather. Nobody expected the small white "
    "boat that came around the lighthouse with torn sails and no flag."
)
CHINESE = (
    "清晨的老港口很安静，只有几个渔民已经开始干活。他们一边补网，一边喝着浓咖啡，聊着天气。"
    "谁也没想到，一艘挂着破帆、没有旗子的小白船会绕过灯塔驶进来。"
)
LENGTHS = (16, 32, 64, 128, 256)
STORIES = ("Once upon a time", "The best way to learn is", "In the year 2050, people")


def chinese_tokens(model: tg.LanguageModel) -> Result:
    """Tokens that touch each Chinese character; a token of two characters counts half for each."""
    counts = np.zeros(len(CHINESE))
    for token in model.tokenize(CHINESE):
        assert token.start is not None
        assert token.end is not None
        counts[token.start : token.end] += 1 / (token.end - token.start)
    counts = counts[[char >= "一" for char in CHINESE]]
    mean, three = counts.mean(), np.mean(counts > 2)
    return Result(
        bool(1 <= mean <= 2 and three < 0.05),
        f"{len(counts)} characters: {mean:.2f} tokens on average; {three:.0%} of them are three tokens",
        f"{len(counts)} 个汉字：平均 {mean:.2f} 个词元；其中 {three:.0%} 是三个词元",
    )


def english_characters(model: tg.LanguageModel) -> Result:
    ratio = len(ENGLISH) / len(model.tokenize(ENGLISH))
    return Result(
        3 <= ratio <= 4,
        f"{len(ENGLISH)} characters: {ratio:.2f} to a token, spaces included",
        f"{len(ENGLISH)} 个字符：每个词元 {ratio:.2f} 个字符，含空格",
    )


def forward_passes(model: tg.LanguageModel) -> Result:
    timings = model.generate(STORIES[0], max_tokens=100, logit_bias=no_end(model)).timings
    return Result(
        timings.forward_passes == timings.output_tokens == 100,
        f"{timings.output_tokens} tokens, {timings.forward_passes} passes; the first reads the prompt",
        f"{timings.output_tokens} 个词元，{timings.forward_passes} 次前向计算；第一次读入提示词",
    )


def sum_is_one(model: tg.LanguageModel) -> Result:
    sums = [model.next(text).temperature(t).probabilities.sum() for text in STORIES for t in (0.2, 1.0, 1.5)]
    worst = max(abs(total - 1) for total in sums)
    return Result(
        bool(worst <= 1e-6),
        f"{len(sums)} distributions over {model.vocabulary.num_tokens} tokens: within 0.000001",
        f"{len(sums)} 个分布，各 {model.vocabulary.num_tokens} 个词元：误差在 0.000001 以内",
    )


def zero_is_constant(model: tg.LanguageModel) -> Result:
    answers = {
        model.generate(STORIES[1], max_tokens=60, temperature=0, seed=seed, use_cache=cached).ids
        for seed, cached in ((1, True), (2, True), (3, False))
    }
    return Result(
        len(answers) == 1,
        f"3 runs of 60 tokens, other seeds, one without the cache: different answers: {len(answers)}",
        f"3 次，每次 60 个词元，种子不同，其中一次不用缓存：{len(answers)} 种回答",
    )


def seed_decides(model: tg.LanguageModel) -> Result:
    one, again, two = (
        model.generate(STORIES[1], max_tokens=60, temperature=0.8, seed=seed).ids for seed in (1, 1, 2)
    )
    same = sum(a == b for a, b in zip(one, two, strict=False))
    return Result(
        one == again != two,
        f"seed 1 twice: equal; seed 2: {same} of 60 tokens in the same place are equal",
        f"种子 1 两次：相同；种子 2：60 个词元中有 {same} 个在同一位置相同",
    )


def low_temperature_repeats(model: tg.LanguageModel) -> Result:
    """The share of runs of four tokens that stood in the answer before."""
    shares = []
    for temperature in (0.0, 0.5, 1.0):
        repeated = []
        for text in STORIES:
            ids = model.generate(
                text, max_tokens=200, temperature=temperature, seed=1, logit_bias=no_end(model)
            ).ids
            runs = [ids[i : i + 4] for i in range(len(ids) - 3)]
            repeated.append(1 - len(set(runs)) / len(runs))
        shares.append(sum(repeated) / len(repeated))
    zero, half, one = shares
    return Result(
        zero >= half >= one and zero > 2 * one,
        f"runs of four tokens that came before, in 3 x 200 tokens (seed 1): {zero:.0%} at 0, "
        f"{half:.0%} at 0.5, {one:.0%} at 1",
        f"3 × 200 个词元（种子 1）里重复出现过的四词元片段：温度 0 为 {zero:.0%}，"
        f"0.5 为 {half:.0%}，1 为 {one:.0%}",
    )


def top_p_is_small_when_sure(model: tg.LanguageModel) -> Result:
    """Sure from p on: at positions of the English text where the best token has at least p, top-p keeps, in
    the median, at most 10.
    """
    ids = model.tokenize(ENGLISH).ids
    kept = []  # (the best token's probability, how many are kept) at each position
    for i in range(1, len(ids)):
        distribution = model.next(ids[:i])
        kept.append((distribution.top(1)[0].probability, survivors(distribution, 0.9)))
    groups = [(p, [num for best, num in kept if best >= p]) for p in (0.0, 0.3, 0.5, 0.7)]
    first = next((p for p, nums in groups if nums and median(nums) <= 10), None)
    words = ", ".join(f"{median(nums):.0f} (p = {p:.0%}, {len(nums)})" for p, nums in groups if nums)
    return Result(
        first is not None,
        f"tokens kept where the best one has at least p, median (positions): {words}",
        f"最好的词元至少占 p 时留下的个数，中位数（位置数）：{words}",
        f"p = {first:.0%}" if first else "",
    )


def cache_changes_nothing(model: tg.LanguageModel) -> Result:
    ids = [model.generate(STORIES[2], max_tokens=40, use_cache=cached).ids for cached in (True, False)]
    same = sum(a == b for a, b in zip(*ids, strict=True))
    return Result(ids[0] == ids[1], f"{same} of 40 tokens are equal", f"40 个词元中 {same} 个相同")


def head_share(model: tg.LanguageModel) -> Result:
    sizes = [product.num_bytes for product in model.engine.model.products]
    share = sizes[-1] / sum(sizes)
    return Result(
        0.2 <= share <= 0.5,
        f"{sizes[-1] / 1e6:.1f} of {sum(sizes) / 1e6:.1f} MB read for each token: {share:.0%}",
        f"每个词元读取 {sum(sizes) / 1e6:.1f} MB，其中 {sizes[-1] / 1e6:.1f} MB：{share:.0%}",
    )


def kv_bytes(model: tg.LanguageModel) -> Result:
    config = model.engine.model.config  # type: ignore[attr-defined]  # of a decoder
    formula = 2 * config.num_layers * config.num_kv_heads * config.head_dim * 2
    measured = model.engine.model.kv_bytes_per_token
    words = f"2 x {config.num_layers} x {config.num_kv_heads} x {config.head_dim} x 2 = {formula}"
    return Result(
        formula == measured,
        f"{words}; the cache takes {measured}",
        f"{words}；缓存实际占用 {measured}",
    )


def cache_is_tenfold(model: tg.LanguageModel) -> Result:
    """Time of one more token at a length of n: the whole text again, and one row."""
    times = {n: whole_and_one_more_s(model, n) for n in LENGTHS}
    ratios = [(n, whole / one) for n, (whole, one) in times.items()]
    first = next((n for n, ratio in ratios if ratio >= 10), None)
    words = ", ".join(f"{rounded(ratio)} (n = {n})" for n, ratio in ratios)
    return Result(
        first is not None,
        f"times faster for one more token after n: {words}",
        f"n 个词元之后再生成一个，快多少倍：{words}",
        f"n = {first}" if first and first > LENGTHS[0] else "",
    )


def prefill_is_faster(model: tg.LanguageModel) -> Result:
    whole, one = whole_and_one_more_s(model, 256)
    ratio = one / (whole / 256)
    return Result(
        ratio > 1,
        f"256 tokens of a prompt: about {rounded(ratio)} times faster per token",
        f"256 个词元的提示词：每个词元快约 {rounded(ratio)} 倍",
    )


def whole_and_one_more_s(model: tg.LanguageModel, n: int) -> tuple[float, float]:
    """Seconds to compute n tokens at once, and one more after n that are cached: the fastest of nine runs
    each, taken in turns, for other work on the machine only ever adds.
    """
    whole, one = [], []
    with model.step([504] * n) as step:
        for _ in range(9):
            step.scores()
            start = time.perf_counter()
            step.take(30)
            step.scores()
            one.append(time.perf_counter() - start)
            step.truncate(n)
            start = time.perf_counter()
            model.next([504] * n)
            whole.append(time.perf_counter() - start)
    return min(whole), min(one)


CLAIMS = (
    Claim("A Chinese character is one to two tokens", "一个汉字是一到两个词元", chinese_tokens),
    Claim("English has 3 to 4 characters a token", "英文每个词元 3 到 4 个字符", english_characters),
    Claim("100 tokens are 100 forward passes", "100 个词元是 100 次前向计算", forward_passes),
    Claim("The probabilities of all tokens sum to 1", "所有词元的概率之和是 1", sum_is_one),
    Claim("Temperature 0 always gives the same answer", "温度为 0 时回答总是相同", zero_is_constant),
    Claim(
        "The same seed gives the same answer, another one another",
        "种子相同回答相同，种子不同回答不同",
        seed_decides,
    ),
    Claim("A low temperature repeats itself", "温度低时容易重复", low_temperature_repeats),
    Claim(
        "Top-p 0.9 keeps few tokens where the model is sure",
        "模型有把握时，top-p 0.9 只留下很少的词元",
        top_p_is_small_when_sure,
    ),
    Claim("The KV cache changes no token", "KV 缓存不改变任何词元", cache_changes_nothing),
    Claim("The head is a fifth to a half of a small model", "输出层占小模型的五分之一到一半", head_share),
    Claim(
        "KV bytes a token = 2 x layers x KV heads x head size x 2 bytes",
        "每个词元的 KV 字节数 = 2 × 层数 × KV 头数 × 头大小 × 2 字节",
        kv_bytes,
    ),
)
SPEED_CLAIMS = (
    Claim("The KV cache is ten times faster", "KV 缓存快十倍", cache_is_tenfold),
    Claim("Prefill is faster than decode, per token", "按每个词元算，预填充比解码快", prefill_is_faster),
)


def no_end(model: tg.LanguageModel) -> dict[int, float]:
    """A bias that bans the end tokens, so that every answer has its full length."""
    return dict.fromkeys(model.vocabulary.end_ids, -100.0)


def survivors(distribution: tg.Distribution, top_p: float) -> int:
    """How many tokens top-p keeps."""
    return int(np.searchsorted(np.cumsum(np.sort(distribution.probabilities)[::-1]), top_p)) + 1


def rounded(ratio: float) -> str:
    """One significant digit: what another run on the same machine would say too."""
    return f"{float(f'{ratio:.0e}'):g}"


def main() -> None:
    model = tg.load(*sys.argv[1:2])
    machine = f"{cpu_model()}, {model.engine.model.cpu.num_threads} threads"
    rows = [claim.rows(model) for claim in CLAIMS]
    speed_rows = [claim.rows(model) for claim in SPEED_CLAIMS]
    for i, language in enumerate(("en", "zh")):
        text = page(language, model.name, machine, [row[i] for row in rows], [row[i] for row in speed_rows])
        (DOCS / language / "claims.md").write_text(text, encoding="utf-8")
        print(text)


if __name__ == "__main__":
    main()
