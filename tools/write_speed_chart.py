"""Draw docs/speed.svg, the chart of the README, from the tables of a results page."""

import re

from tools import ROOT
from tools.write_kv_pictures import Picture

RESULTS = ROOT / "benchmarks" / "results" / "2026-11-26-epyc-2-threads-avx2.md"
PICTURE = ROOT / "docs" / "speed.svg"
PHASES = {"prefill of 512": "Reading a prompt of 512 tokens", "decode of 64": "Writing an answer"}
LEFT, ONE, ROW = 90, 180, 30  # where bars begin, the width of llama.cpp's speed, the height of a row


def ratios(phase: str) -> dict[str, tuple[int, float]]:
    """By weight type: tokens a second, and that divided by llama.cpp's."""
    table = RESULTS.read_text("utf-8").split(f"| {phase} |")[1].split("\n\n")[0]
    rows = re.findall(r"^\| (\w+) \| (\d+) \| ([\d.]+) \(", table, re.MULTILINE)
    return {name: (int(rate), float(ratio)) for name, rate, ratio in rows}


def chart() -> Picture:
    """A bar for each weight type in both phases, beside llama.cpp's speed as 1."""
    picture = Picture(400, "Speed beside llama.cpp, by weight type")
    y = 30
    for phase, title in PHASES.items():
        picture.text(24, y, title, "head")
        for number, (name, (rate, ratio)) in enumerate(ratios(phase).items()):
            top = y + 14 + ROW * number
            picture.text(24, top + 16, name, "label")
            picture.box(LEFT, top, ONE * ratio, ROW - 8, "key")
            picture.text(LEFT + ONE * ratio + 8, top + 16, f"{ratio:.2f} × llama.cpp, {rate} tokens/s", "small")
        picture.line(LEFT + ONE, y + 8, LEFT + ONE, y + 14 + ROW * 4, 2)
        y += 60 + ROW * 4
    picture.lines(24, y - 8, [CAPTION])
    return picture


CAPTION = "Qwen3-0.6B, AVX2, 2 threads of an AMD EPYC (Zen 3), 26 November 2026. The line is llama.cpp."


if __name__ == "__main__":
    PICTURE.write_text(chart().svg(), "utf-8")
