"""Condensed reading: every line is counted once, what is shown is what stands there, and memory is bounded."""

import io
import os
import random
import re
import threading
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from localrun_testing.scripted_client import INFO

from localrun.base.content import FilePart
from localrun.base.errors import NotFoundError, PromptTooLongError, UsageError
from localrun.base.request import Request
from localrun.chat.attachments import MAX_FILE_BYTES, read_attachment, read_text
from localrun.chat.long_text import line_patterns
from localrun.chat.long_text.condensed import Kinds, NotTextError, error_kinds
from localrun.chat.long_text.condensed_file import ReadingProgress, condense, condense_file
from localrun.chat.long_text.line_patterns import COMPARED, MOST_PATTERNS, MOST_VALUES, PatternTable
from localrun.chat.long_text.part_of_text import part_of, split_part
from localrun.chat.long_text.pieces import n_bytes
from localrun.chat.long_text.reading_speed import ReadingSpeed
from localrun.chat.long_text.ways_to_read import WaysToRead

KIND = re.compile(r"^\[×([\d,]+), ([\d,]+)–([\d,]+)\] ", re.M)
LINE = re.compile(r"^(?:\[|  )([\d,]+)(?:\] |: )(.*)$", re.M)
HEAD = re.compile(r"^\[×[\d,]+, ([\d,]+)–[\d,]+\] (.*)$", re.M)

WORDS = st.sampled_from(["GET", "user", "ERROR", "ada", "7", "42", "404", "2026-11-27", "0x1f", "10.0.0.1", "db#", "…"])
LINES = st.lists(st.lists(WORDS, max_size=5).map(" ".join), min_size=1, max_size=60)


def number(digits: str) -> int:
    return int(digits.replace(",", ""))


@given(LINES, st.integers(2, 40), st.sampled_from([200, 2000, 10**6]))
def test_every_line_counts_once_and_stands_where_it_is_said_to_be(lines: list[str], room: int, most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_patterns, "MOST_PATTERNS", room)
        patch.setattr(line_patterns, "MOST_VALUES", 3)
        short = Kinds("\n".join(lines) + "\n").condensed(most)
    assert short.n_lines == len(lines)
    kinds = [tuple(map(number, found)) for found in KIND.findall(short.text)]
    assert len(kinds) == short.n_kinds
    assert sum(count for count, _, _ in kinds) + short.n_shown == len(lines)
    assert all(1 <= first < last <= len(lines) and count <= last - first + 1 for count, first, last in kinds)
    assert all(lines[number(at) - 1] == text for at, text in LINE.findall(short.text))
    for at, kind in HEAD.findall(short.text):
        assert re.fullmatch(re.sub("[#…]", ".*", re.escape(kind).replace(r"\#", "#")), lines[number(at) - 1])


def alike(line: str) -> str:
    """A line with its numbers masked, one character at a time: as patterns are where nothing takes few values."""
    masked = ""
    for word in re.split(r"(\s)", line):
        changes = any(char.isdigit() for char in word)
        masked += "#" if changes else word
    return masked


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9999)), min_size=1, max_size=200), st.data())
def test_patterns_are_those_of_a_plain_count(pairs: list[tuple[str, int]], data: st.DataObject) -> None:
    """Large numbers always change, so lines are alike where their letters are."""
    lines = [f"{letter} {10_000 + value} {letter}" for letter, value in pairs]
    table = PatternTable()
    for line in lines:
        table.add(line, len(line))
    counted = {alike(pattern.examples[0].text): pattern.count for pattern in table.patterns()}
    assert counted == {key: sum(alike(line) == key for line in lines) for key in map(alike, lines)}


def counts(lines: list[str]) -> dict[str, int]:
    table = PatternTable()
    for line in lines:
        table.add(line, len(line))
    return {pattern.examples[0].text: pattern.count for pattern in table.patterns()}


def test_numbers_of_few_values_are_kinds_and_those_of_many_are_not() -> None:
    """A status is what one looks for; a duration is not."""
    rng = random.Random(1)
    lines = [f"GET /users/{rng.randrange(900)} {rng.choice([200, 404])} {rng.randrange(900)}ms" for _ in range(2000)]
    lines[1234] = "GET /users/5 500 7ms"
    found = counts(lines)
    statuses = {text.split()[2]: count for text, count in found.items()}
    assert statuses == {one: sum(line.split()[2] == one for line in lines) for one in ("200", "404", "500")}
    assert found[lines[1234]] == 1


def test_a_word_of_many_values_is_one_kind_and_words_of_errors_stay_apart() -> None:
    users = [f"user {name} logged in" for name in "abcdefghijkl"]
    levels = [f"{level} the job is done" for level in ("INFO", "ERROR", "DEBUG", "WARN")]
    found = counts([*users, *levels])
    assert found == {users[0]: 12, **dict.fromkeys(levels, 1)}
    assert len(counts(users[:MOST_VALUES])) == MOST_VALUES


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("at 2026-11-27T10:00:00.123Z", "at 2027-01-01T23:59:59.999Z"),
        ("id 550e8400-e29b-41d4-a716-446655440000", "id 6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
        ("ptr 0xDEADBEEF", "ptr 0x1"),
        ("commit 3f786850e387", "commit 89e6c98d9288"),
        ("from 10.0.0.1:8080", "from 192.168.17.1:80"),
        ("took 1,234.5 ms", "took 17.25 ms"),
    ],
)
def test_what_changes_in_logs_is_no_difference(one: str, other: str) -> None:
    assert counts([one, other]) == {one: 2}


def test_errors_are_told_by_kinds_in_plain_words() -> None:
    lines = [f"10:0{number % 10}:00 ERROR db: shard {number} is [full]" for number in range(20)]
    lines[5:15] = [f"10:10:{number} INFO shard {number} is fine" for number in range(10, 20)]
    text = Kinds("\n".join([*lines, "FATAL: gone"])).condensed().text
    assert error_kinds(text) == ["10 × ERROR db: shard # is [full]  (lines 1 to 20)", "1 × FATAL: gone  (line 21)"]
    assert error_kinds("\n".join(lines)) == []


def test_any_number_of_kinds_takes_bounded_memory() -> None:
    """Lines that have nothing in common; then one line without an end."""

    class Noise(io.TextIOBase):
        def __init__(self, n_lines: int) -> None:
            self.left, self.rng = n_lines, random.Random(2)

        def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
            self.left -= 1
            words = ("".join(self.rng.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(4))
            return " ".join(words) + "\n" if self.left >= 0 else ""

    kinds = Kinds(Noise(3 * MOST_PATTERNS))  # type: ignore[arg-type]
    short = kinds.condensed()
    assert (
        short.n_lines
        == 3 * MOST_PATTERNS
        == short.n_shown + sum(number(count) for count, _, _ in KIND.findall(short.text))
    )
    assert "words and signs of a line were compared" in short.summary


def test_a_line_of_any_length_takes_little_memory_and_says_what_is_left_out() -> None:
    class Endless(io.TextIOBase):
        left = 500

        def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
            self.left -= 1
            return "x" * size if self.left >= 0 else ""

    tracemalloc.start()
    short = Kinds(Endless()).condensed()  # type: ignore[arg-type]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20
    assert f"… (+{500 * (1 << 16) - COMPARED:,} characters)" in short.text
    assert "1 of the lines below cut" in short.summary


def test_less_is_shown_of_each_kind_where_room_is_short_but_no_kind_is_left_out() -> None:
    lines = [f"{kind} worker did {n} things" for n in range(1000, 1009) for kind in "abcdefgh"]
    lines.insert(20, "panic: out of memory")
    kinds = Kinds("\n".join(lines))
    rich, poor = kinds.condensed(10**6), kinds.condensed(1)
    assert (rich.n_kinds, rich.n_shown) == (poor.n_kinds, poor.n_shown) == (8, 1)
    assert n_bytes(poor.text) < n_bytes(rich.text)
    assert "[21] panic: out of memory" in poor.text


def test_a_file_of_any_size_is_condensed_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"\xef\xbb\xbf" + b"".join(b"%d ok\r\n" % n for n in range(1000, 1100)) + b"bad \xff byte\n")
    assert split_part("server.log:condensed") == ("server.log", part_of("condensed"))
    read = read_attachment(path, part_of("condensed"))
    assert read.name == "server.log:condensed"
    assert "[×100, 1–100] # ok\n  1: 1000 ok\n  100: 1099 ok\n[101] bad \ufffd byte" in read.text
    os.truncate(path, MAX_FILE_BYTES + 1)
    with pytest.raises(UsageError, match="is too long") as raised:
        read_attachment(path, part_of("-2"))
    assert "server.log:condensed" in str(raised.value.hint)
    path.write_bytes(b"\x00\x01binary")
    with pytest.raises(UsageError, match=r"server.log cannot be condensed: it is not text"):
        read_attachment(path, part_of("condensed"))
    with pytest.raises(NotFoundError, match=r"there is no file none.log"):
        read_attachment(tmp_path / "none.log", part_of("condensed"))
    with pytest.raises(UsageError, match="cannot be read: this is a folder, not a file"):
        read_attachment(tmp_path, part_of("condensed"))


def test_a_long_file_is_watched_and_can_be_stopped(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes((b"all is well here, " * 10 + b"\n") * 28_000)
    size = path.stat().st_size
    told: list[tuple[int, str]] = []
    condense_file(path, lambda progress: told.append((progress.n_read, str(progress))))
    assert [n for n, _ in told] == [*range(1 << 20, size, 1 << 20)]
    assert re.fullmatch(r"reading server\.log: 21% of 4\.83 MiB, ≈.+ left", told[0][1])
    told.clear()

    def stop(progress: ReadingProgress) -> None:
        told.append((progress.n_read, ""))
        raise UsageError("stopped")

    with pytest.raises(UsageError, match="stopped"):
        condense_file(path, stop)
    assert len(told) == 1
    assert condense(io.BytesIO(b"a 1\na 2\n"), "stdin").n_lines == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names: not this OS (windows)")
def test_a_pipe_is_read_only_where_one_may_wait(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(UsageError, match="this is a pipe, not a file"):
        condense_file(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"one\ntwo\n",), daemon=True)
    writer.start()
    assert condense_file(pipe, may_wait=True).n_lines == 2
    writer.join()


def test_binaries_are_refused() -> None:
    with pytest.raises(NotTextError):
        Kinds("text\n\x00")


def ways(text: str, n_bytes_per_token: float = 4) -> list[tuple[str, bool]]:
    """The names of the ways to read a text, and whether each is read at once."""

    def count(request: Request) -> int:
        size = int(n_bytes(str(request.messages[0]["content"])) / n_bytes_per_token)
        if size > 10**6:
            raise PromptTooLongError("too long")
        return size

    info = replace(INFO, ctx=2048)
    found = WaysToRead("What went wrong?", info, count, lambda seen: ReadingSpeed(100, 10)).of(FilePart("a.log", text))
    assert all("≈" in way.cost for way in found)
    return [(way.name, way.plan is None) for way in found]


def test_the_best_way_comes_first() -> None:
    rng = random.Random(3)
    said = "was taken up, and done by the worker that had asked for it first, without a hitch"
    log = "".join(f"{n} job {rng.randrange(10**6, 10**7)} {5 * said}\n" for n in range(10_000, 20_000))  # 4 MB
    prose = "".join(" ".join(rng.choices(["ab", "cd", "efg", "h", "ij"], k=9)) + "\n" for _ in range(4000))
    assert ways(log) == [("condensed", True), ("in parts", False)]
    assert ways(prose)[-1] == ("in parts", False)
    assert ways("short") == [("as it is", True)]
    many = "".join(f"{a}{b} of {a} with {b}{a}: {n}\n" for a in "abcdefgh" for b in "ijklmnop" for n in range(100, 200))
    assert ways(many, 0.5)[0] == ("condensed", False)


def test_a_text_whose_lines_are_all_different_is_not_offered_condensed() -> None:
    rng = random.Random(3)
    words = ["".join(rng.choices("abcdefghij", k=5)) for _ in range(3000)]
    text = "".join(" ".join(rng.choices(words, k=10)) + "\n" for _ in range(8000))
    assert not Kinds(text).are_clear
    assert ways(text) == [("in parts", False)]


def test_megabytes_are_not_counted_token_by_token() -> None:
    counted: list[int] = []

    def count(request: Request) -> int:
        counted.append(n_bytes(str(request.messages[0]["content"])))
        return counted[-1] // 3

    log = "job 17 is done, and its results are where it was asked to put them\n" * 25_000
    WaysToRead("What went wrong?", replace(INFO, ctx=2048), count).of(FilePart("a.log", log))
    assert max(counted) < 16 * 2048


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
def test_a_file_of_windows_is_the_same_text(encoding: str, tmp_path: Path) -> None:
    text = "".join(f"{number} Größe: all is well\n" for number in range(50))
    path = tmp_path / "windows.log"
    path.write_bytes((b"\xfe\xff" if encoding == "utf-16-be" else b"") + text.encode(encoding))
    assert read_text(path) == text
    assert condense_file(path).text == Kinds(text).condensed().text


def test_the_time_of_a_text_is_that_of_tokens_that_see_half_of_it() -> None:
    """A part fills the context, and a text that is read at once may not."""
    seen: list[int] = []

    def speed_at(n: int) -> ReadingSpeed:
        seen.append(n)
        return ReadingSpeed(100, 10)

    text = "a line of a log that goes on\n" * 400
    ways = WaysToRead("What went wrong?", replace(INFO, ctx=2048), lambda request: 500, speed_at)
    assert ways.at_once(FilePart("a.log", text[:2000])) is not None
    ways.in_parts(FilePart("a.log", text))
    assert seen == [250, 1024]
