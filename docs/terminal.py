"""Makes docs/terminal.svg, the picture in README.md, from a real run: `python docs/terminal.py`.

The model's numbers in it are those of the machine it runs on. Arguments go to `tokenglass run`.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

PROMPT = "Why is the sky blue?"
WIDTH = 96


def main() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tokenglass", "run", PROMPT, *sys.argv[1:]],
        capture_output=True,
        text=True,
        check=True,
    )
    *notes, summary = run.stderr.splitlines()
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    console.print(Text(f'$ tokenglass run "{PROMPT}"', "bold"))
    console.print(Text("\n".join(notes), "bright_black"))
    console.print(Text(run.stdout.rstrip("\n")))
    console.print(Text(summary, "green"))
    svg = console.export_svg(title="tokenglass")
    # The fonts rich links to would be fetched from elsewhere; any fixed-width font will do.
    svg = re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    Path(__file__).with_name("terminal.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
