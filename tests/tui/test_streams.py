"""Random bytes as an answer, cut anywhere: what a terminal is sent holds no control function but our own colours."""

import codecs
import io
import random
import re
from collections.abc import Iterator

import pytest
from rich.color import ColorSystem
from textual.content import Content
from textual.style import Style
from textual.visual import RenderOptions

from localrun.cli import console
from localrun.cli.console import AnswerWriter, ThinkingWriter, note
from localrun_tui.markdown.text import MarkdownText

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f\ud800-\udfff]")
OUR_STYLES = re.compile(r"\x1b\[[0-9;]*m")
OPTIONS = RenderOptions(lambda style: Style() if isinstance(style, str) else style, {})
WIDTH = 30
PIECES = [
    *(bytes([n]) for n in (*range(32), 127, *range(0x80, 0xA0), 0xC2, 0xE2, 0xF0, 0xFF)),
    *(b"\xc2" + bytes([n]) for n in (0x90, 0x98, 0x9B, 0x9C, 0x9D, 0x9E, 0x9F)),  # C1 in UTF-8
    *(b"\x1b[", b"\x1b]", b"\x1bP", b"\x1b_", b"\x1b^", b"\x1bX", b"\x1b\\", b"\x1b(0", b"\x1b#8", b"\x1bc", b"\x1bN"),
    *(b"\x1b[2J", b"\x1b[31;1m", b"\x1b[?1049h", b"\x1b[6n", b"\x1b]0;title\x07", b"\x1b]52;c;aGk=\x1b\\"),
    *(b"\x1b]8;;http://a.example\x1b\\", b"\x1bP+q544e\x1b\\", b"&#27;[31m", b"&#x9b;", b"&#x202e;", b"&#x1B", b";"),
    *(text.encode() for text in ("\u202e", "\u2066", "\U000e0041", "\u2028", "é", "字", "🦀", "e\u0301", "\ufeff")),
    *(b"# ", b"- ", b"> ", b"`", b"```\n", b"**", b"[", b"](", b")", b"<", b">", b"|", b"|-|\n", b"\n", b"\n\n", b"\t"),
    *(b"words ", b"x", b"0;", b"m", b"http://a.example/", b"\\", b"$", b"~~", b"---\n"),
]


def streams(n: int, seed: int) -> Iterator[list[str]]:
    """Answers as they come: bytes cut anywhere, decoded as they arrive; what is no UTF-8 becomes U+FFFD or worse."""
    rng = random.Random(seed)
    for _ in range(n):
        pieces = rng.choices(PIECES, k=rng.randrange(1, 12))
        if rng.random() < 0.3:
            pieces.insert(rng.randrange(len(pieces)), rng.randbytes(rng.randrange(12)))
        data = b"".join(pieces)
        cuts = sorted(rng.randrange(len(data) + 1) for _ in range(rng.randrange(3)))
        errors = rng.choice(["replace", "surrogateescape"])
        decoder = codecs.getincrementaldecoder("utf-8")(errors)
        ends = [*cuts, len(data)]
        yield [decoder.decode(data[a:b], b == len(data)) for a, b in zip([0, *cuts], ends, strict=True)]


def drawn(lines: list[Content]) -> str:
    """What the driver writes for these lines, without the styles, which are ours."""
    strips = [strip for line in lines for strip in line.render_strips(WIDTH, 1, Style(), OPTIONS)]
    text = "".join(
        segment.style.render(segment.text, color_system=ColorSystem.TRUECOLOR) if segment.style else segment.text
        for strip in strips
        for segment in strip
    )
    return OUR_STYLES.sub("", text)


@pytest.mark.parametrize("n", [2_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_no_control_function_reaches_the_terminal(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "is_terminal", lambda stream: True)
    out, err = io.StringIO(), io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("sys.stderr", err)
    shown = 0
    for chunks in streams(n, seed=n):
        answer, thinking, message = AnswerWriter(), ThinkingWriter(), MarkdownText()
        for chunk in chunks:
            answer.feed(chunk)
            thinking.feed(chunk)
            message.append(chunk)
        answer.end()
        note("".join(chunks))
        lines = message.lines(WIDTH)
        seen = [out.getvalue(), err.getvalue(), message.source, drawn(lines)]
        for text in seen:
            found = CONTROL.search(text)
            assert found is None, (found, chunks)
        shown += len(seen[0].strip()) > 0
        for stream in (out, err):
            stream.seek(0)
            stream.truncate()
    assert shown > n / 2, "most streams say something"


def test_the_scan_sees_what_was_not_cleaned() -> None:
    link = Content.styled("x", Style(link="http://a.example"))
    assert CONTROL.search(drawn([link]))
    assert CONTROL.search(drawn([Content("a\x9b2J")]))
    assert not CONTROL.search(drawn([Content.styled("x", "bold red")]))
