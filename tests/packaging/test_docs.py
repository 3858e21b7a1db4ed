"""The README and the pages of docs: figures have a source, and the changelog stays short."""

import re

from localrun_testing import REPOSITORY

from tools.write_speed_chart import PICTURE, chart, ratios

PAGES = (REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md")))
SPEED = re.compile(r"\d\s*(tokens/s|tokens a second|tok/s|GB/s|times as fast|times llama\.cpp|× llama)")
SOURCE = re.compile(r"benchmarks[/.]\w+|localrun (bench|explain)")


def test_a_section_with_a_speed_names_what_measures_it() -> None:
    for page in PAGES:
        for section in re.split(r"(?m)^#+ ", page.read_text("utf-8")):
            if found := SPEED.search(section):
                assert SOURCE.search(section), (page.name, section.partition("\n")[0], found[0])


def test_every_script_and_result_that_a_page_names_exists() -> None:
    for page in PAGES:
        for name in re.findall(r"(?<![\w-])benchmarks/[\w./-]*\w", page.read_text("utf-8")):
            assert (REPOSITORY / name).exists(), (page.name, name)


def test_the_chart_of_the_readme_shows_the_results_page() -> None:
    assert PICTURE.read_text("utf-8") == chart().svg(), "run `python -m tools.write_speed_chart`"
    measurements = (REPOSITORY / "docs" / "measurements.md").read_text("utf-8")
    for phase, row in (("prefill of 512", "**prefill of 512 tokens**, AVX2"), ("decode of 64", "**decode**, AVX2")):
        cells = " | ".join(f"{rate} · {ratio:.2f}" for rate, ratio in ratios(phase).values())
        assert f"| {row} | {cells} |" in measurements


def test_the_changelog_has_one_line_an_entry() -> None:
    *_, entries = (REPOSITORY / "CHANGELOG.md").read_text("utf-8").partition("## 0.1.0")
    lines = [line for line in entries.splitlines()[1:] if line and not line.startswith("#")]
    assert [line for line in lines if not line.startswith("- ") or len(line) > 150] == []
