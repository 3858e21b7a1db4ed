"""Markdown as lines: the same however it arrives, within the width, and never more than text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from localrun_testing.cpu_time import within
from rich.cells import cell_len
from textual.content import Content

from localrun_tui.markdown.formulas import readable
from localrun_tui.markdown.text import MarkdownText
from localrun_tui.markdown.wide import Wide
from localrun_tui.markdown.wrapping import wrap

PAGE = """# Title

A *first* paragraph with **bold**, `code` and ~~no~~.
A second line.

1. one
2. two
   - inner

   more of two
10. ten

> quoted
> - list

| name | size |
|---|---:|
| a | 1 |
| longer | 1,024 |

```python
def f(x):
    return x
```

    indented

---
[words](https://a.example/b) <https://c.example>
"""
PIECES = st.lists(
    st.sampled_from([*PAGE.splitlines(keepends=True), "\n", "```\n", "| a |\n", "- x\n", "  - y\n", "wide 漢字 "])
)


def plain(text: MarkdownText, width: int = 60) -> list[str]:
    return [line.plain.rstrip() for line in text.lines(width)]


def test_a_page() -> None:
    assert plain(MarkdownText(PAGE), 44) == [
        "Title",
        "",
        "A first paragraph with bold, code and no.",
        "A second line.",
        "",
        "1. one",
        "",
        "2. two",
        "",
        "   ◦ inner",
        "",
        "   more of two",
        "",
        "3. ten",
        "",
        "▌ quoted",
        "▌",
        "▌ • list",
        "",
        "name   │  size",
        "───────┼──────",
        "a      │     1",
        "longer │ 1,024",
        "",
        " python                             copy: 1",
        " def f(x):",
        "     return x",
        "",
        " code                               copy: 2",
        " indented",
        "",
        "─" * 44,
        "",
        "words (https://a.example/b)",
        "https://c.example",
    ]


@settings(max_examples=40)
@given(PIECES, st.integers(1, 40), st.integers(20, 90))
def test_text_that_arrives_in_pieces_is_drawn_as_if_it_came_at_once(lines: list[str], size: int, width: int) -> None:
    page = "".join(lines)
    grown = MarkdownText()
    for start in range(0, len(page), size):
        grown.append(page[start : start + size])
        grown.lines(width)
    whole = MarkdownText(page)
    assert plain(grown, width) == plain(whole, width)
    assert grown.codes() == whole.codes()
    assert grown.links() == whole.links()


@settings(max_examples=40)
@given(PIECES, st.integers(12, 90))
def test_no_line_is_wider_than_there_is_room(lines: list[str], width: int) -> None:
    assert all(line.cell_length <= width for line in MarkdownText("".join(lines)).lines(width))


def test_codes_and_links_are_found_in_order() -> None:
    text = MarkdownText(PAGE)
    assert text.codes() == ["def f(x):\n    return x", "indented"]
    assert text.links() == ["https://a.example/b", "https://c.example"]


@pytest.mark.parametrize(
    "hostile",
    [
        ">" * 3000,
        ">" * 60 + "deep",
        "- " * 2000 + "x",
        "[" * 3000,
        "*a " * 3000,
        "`" * 3001,
        "| a " * 400 + "|\n" + "|-" * 400 + "|\n" + "| b " * 400 + "|\n",
        "<b>" * 2000,
        "![" * 1500,
        "\\" * 5000,
        "a\n" * 3000,
    ],
)
def test_hostile_markdown_is_drawn_in_no_time(hostile: str) -> None:
    lines = within(2, lambda: MarkdownText(f"{hostile}\n\nTHE END").lines(60))
    assert any("THE END" in line.plain for line in lines)
    assert MarkdownText("[b]x[/b] [red]y[/]").lines(60)[0].plain == "[b]x[/b] [red]y[/]"  # markup means nothing


def test_html_and_markup_are_text() -> None:
    assert plain(MarkdownText("<script>x</script> [bold]y[/bold] &lt;b&gt;")) == [
        "<script>x</script> [bold]y[/bold] <b>"
    ]


def test_code_that_grows_is_coloured_as_a_whole_once_it_is_complete() -> None:
    code = "```python\n" + 'x = 1\ntext = """\n' + "for no reason\n" * 12 + '"""\ny = 2\n'
    text, whole = MarkdownText(), MarkdownText(code)
    for n, piece in enumerate(pieces := [code[i : i + 7] for i in range(0, len(code), 7)], 1):
        text.append(piece)
        so_far = MarkdownText("".join(pieces[:n]))
        assert [line.plain for line in text.lines(40)] == [line.plain for line in so_far.lines(40)]
    assert not all(a.is_same(b) for a, b in zip(text.lines(40), whole.lines(40), strict=True))
    text.append("", is_last=True)
    assert all(a.is_same(b) for a, b in zip(text.lines(40), whole.lines(40), strict=True))


def test_code_with_text_behind_it_is_coloured_as_a_whole() -> None:
    code = "```python\n" + 'x = 1\ntext = """\n' + "for no reason\n" * 12 + '"""\n```\n\nthat '
    text, whole = MarkdownText(), MarkdownText(code)
    for start in range(0, len(code), 7):
        text.append(code[start : start + 7])
    assert all(a.is_same(b) for a, b in zip(text.lines(40), whole.lines(40), strict=True))


def test_tasks_have_boxes() -> None:
    assert plain(MarkdownText("- [ ] one\n- [x] two\n- [X] **three**\n- [y] four\n\n1. [ ] five")) == [
        "☐ one",
        "☑ two",
        "☑ three",
        "• [y] four",
        "",
        "☐ five",
    ]


def test_a_wrapped_line_of_code_ends_in_a_mark() -> None:
    code = "x = " + "a" * 40
    lines = plain(MarkdownText(f"```python\n{code}\nshort\n```"), 24)
    assert lines[1:] == [f" {code[:21]}↩", f" {code[21:42]}↩", f" {code[42:]}", " short"]
    joined = "".join(line[1:].removesuffix("↩") for line in lines[1:-1])
    assert joined == code


@pytest.mark.parametrize("shift", [0, 16, 32, 400])
def test_code_that_is_not_wrapped_moves_below_a_window(shift: int) -> None:
    text = MarkdownText(f"```\n{''.join(chr(65 + n % 26) for n in range(60))}\nshort\n```")
    lines = [line.plain for line in text.lines(24, Wide(True, shift))]
    first, start = lines[1].strip(), min(shift, 38)
    letters = "".join(chr(65 + n % 26) for n in range(60))[start : start + 22]
    wanted = ("‹" + letters[1:] if start else letters)[: 22 if start == 38 else 21] + ("" if start == 38 else "›")
    assert first == wanted
    assert all(len(line) <= 24 for line in lines)


def test_a_table_of_too_many_columns_says_so_and_breaks_no_word() -> None:
    cells = [f"some words {n}" for n in range(12)]
    text = MarkdownText(f"|{'|'.join(cells)}|\n|{'---|' * 12}\n|{'|'.join(cells)}|")
    lines = plain(text, 70)
    assert lines[0].startswith("some words │ some words │")
    assert all(line.endswith("›") and len(line) == 70 for line in lines)


def test_a_table_as_wide_as_it_is() -> None:
    text = MarkdownText(f"| {'name' * 5} | {'size' * 5} |\n|---|---|\n| {'漢字' * 6} | 2 |")
    assert [line.cell_length for line in text.lines(30, Wide(True))] == [30, 30, 30]
    whole = [line.plain for line in text.lines(60, Wide(True))]
    assert whole[0].split("│")[0].strip() == "name" * 5
    assert text.lines(30, Wide(True))[0].plain.endswith("›")
    assert text.lines(30, Wide(True, 99))[0].plain.startswith("‹")


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (r"\alpha^2 + x_{ij} \leq \sum_{i=1}^{n} x_i", "α² + xᵢⱼ ≤ ∑ᵢ₌₁ⁿ xᵢ"),
        (r"\frac{a+b}{c} = \frac{1}{2}", "(a+b)/c = 1/2"),
        (r"\frac{\frac{1}{x}}{y}", "(1/x)/y"),
        (r"\sqrt{x+1}", "√(x+1)"),
        (r"\left( \text{softmax}(x) \right)", "( softmax(x) )"),
        (r"\mathbb{R}^n \to \mathbb{R}", "ℝⁿ → ℝ"),
        (r"\sin x + \lim_{n \to \infty} a", "sin x + lim _(n → ∞) a"),
        (r"\{1, 2\}", "{1, 2}"),
        (r"\begin{pmatrix} 1 \end{pmatrix}", None),
        (r"a &= b \\ c &= d", None),
        (r"\leqqqqslantt", None),
        (r"\unknown{x}", None),
    ],
)
def test_a_formula_is_readable_or_as_it_was_written(source: str, shown: str | None) -> None:
    assert readable(source) == shown


def test_formulas_in_a_text() -> None:
    text = MarkdownText(
        r"Since \(x^2\) and $y_1$, it costs $5 and $6, `$x^2$` stays:" + "\n\n\\[\nE = mc^2\n\\]\n\n" + r"and $\foo{x}$"
    )
    assert plain(text, 80) == [
        "Since x² and y₁, it costs $5 and $6, $x^2$ stays:",
        "",
        "  E = mc²",
        "",
        r"and $\foo{x}$",
    ]


def test_chinese_fills_the_line_and_keeps_its_punctuation() -> None:
    text = "键值缓存保存每个标记的键和值，因此新的标记只需读取新的内容。"
    lines = plain(MarkdownText(f"The cache: {text}"), 24)
    assert lines[0] == "The cache: 键值缓存保存"
    assert "".join(lines).replace("The cache: ", "") == text
    assert all(line[0] not in "，。" for line in lines)
    assert all(cell_len(line) <= 24 for line in lines)


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from("ab 漢字，。（）x"), max_size=60), st.integers(4, 30))
def test_wrapping_loses_nothing_but_spaces(text: str, width: int) -> None:
    lines = wrap(Content(text), width)
    assert "".join(line.plain for line in lines).replace(" ", "") == text.replace(" ", "")
    assert all(line.cell_length <= width for line in lines)


def test_a_sign_of_several_characters_is_not_broken() -> None:
    """A family, a person with a tone and a tool, flags, a key cap, an accent."""
    signs = ["👨‍👩‍👧‍👦", "👩🏽‍💻", "🏳️‍🌈", "🇩🇪", "🇫🇷", "1️⃣", "e\u0301", "漢"]
    for width in range(2, 12):
        lines = [line.plain for line in wrap(Content("".join(3 * signs)), width)]
        assert "".join(lines) == "".join(3 * signs)
        left = signs * 3
        for line in lines:
            assert cell_len(line) <= width
            while line:
                assert line.startswith(left[0]), lines
                line = line.removeprefix(left.pop(0))


def test_an_image_is_a_link() -> None:
    text = MarkdownText("![a cat](https://a.example/cat.png)")
    assert plain(text, 80) == ["▣ a cat (https://a.example/cat.png)"]
    assert text.links() == ["https://a.example/cat.png"]
