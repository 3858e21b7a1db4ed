"""Draws docs/run.svg, the README's picture: a real prompt, answered by the built-in model of this checkout."""

import io
import subprocess
import sys

from rich.console import Console
from rich.text import Text

from tools import ROOT

TARGET = ROOT / "docs" / "run.svg"
PROMPT = "Why is the second token faster than the first?"
WIDTH = 92


def main() -> None:
    """Run the prompt as a user would and write the picture."""
    command = [sys.executable, "-m", "localrun", "run", "--no-stdin", "--stats", "--temperature", "0", PROMPT]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    console.print(Text(f'$ localrun run --stats "{PROMPT}"', style="bold"))
    console.print(Text(done.stdout.rstrip()))
    console.print()
    console.print(Text(done.stderr.rstrip(), style="dim"))
    TARGET.write_text(console.export_svg(title="localrun"), encoding="utf-8")


if __name__ == "__main__":
    main()
