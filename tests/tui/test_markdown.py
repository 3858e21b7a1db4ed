"""Markdown as lines: the same however it arrives, within the width, and never more than text."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localrun_tui.markdown.text import MarkdownText

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
    began = time.process_time()
    drawn = "".join(line.plain for line in MarkdownText(f"{hostile}\n\nTHE END").lines(60))
    assert "THE END" in drawn
    assert time.process_time() - began < 2.0
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
