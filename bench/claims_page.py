"""The pages that `claims.py` writes, docs/en/claims.md and docs/zh/claims.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import tokenglass as tg


@dataclass(frozen=True)
class Result:
    """What was measured, in both languages. start: from where on the claim holds, if not always."""

    holds: bool
    en: str
    zh: str
    start: str = ""  # such as "n = 64"

    @property
    def verdicts(self) -> tuple[str, str]:
        if not self.holds:
            return "does not hold", "不成立"
        if self.start:
            return f"holds from {self.start}", f"从 {self.start} 起成立"
        return "holds", "成立"


@dataclass(frozen=True)
class Claim:
    en: str
    zh: str
    measure: Callable[[tg.LanguageModel], Result]

    def rows(self, model: tg.LanguageModel) -> tuple[str, str]:
        """The row of the table in English and in Chinese."""
        result = self.measure(model)
        en, zh = result.verdicts
        return f"| {self.en} | {result.en} | **{en}** |", f"| {self.zh} | {result.zh} | **{zh}** |"


def page(language: str, name: str, machine: str, rows: list[str], speed_rows: list[str]) -> str:
    """The whole page. Both languages have the same headings and the same code."""
    if language == "en":
        title, head = "Claims of tutorials, measured", "| claim | measured | verdict |"
        intro = (
            f"What tutorials say about next-token prediction, measured on {name}. What holds for one\n"
            "model may fail for another: run it on yours. The script writes this page;\n"
            "its functions say what “holds” means."
        )
        first, second = "True of the model", "True of the machine"
        notes = (
            "These numbers are the same on every machine; a test measures them again.",
            f"Measured on {machine}, rounded to one digit.",
        )
    else:
        title, head = "教程里的说法，逐条测量", "| 说法 | 测量 | 结论 |"
        intro = (
            f"教程里关于“预测下一个词元”的说法，在 {name} 上逐条测量。对一个模型成立的说法，换一个模型\n"
            "可能不成立：请在你的模型上运行。本页由脚本写成，“成立”的标准见脚本里的函数。"
        )
        first, second = "取决于模型", "取决于机器"
        notes = ("这些数字在每台机器上都相同；有测试重新测量。", f"测量机器：{machine}，取一位有效数字。")
    table = [head, "|---|---|---|"]
    lines = [f"# {title}", "", intro, "", "```bash", "python bench/claims.py", "```", ""]
    lines += [f"## {first}", "", notes[0], "", *table, *rows, ""]
    lines += [f"## {second}", "", notes[1], "", *table, *speed_rows]
    return "\n".join(lines) + "\n"
