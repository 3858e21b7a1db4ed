"""Reading a text that is longer than the context: its pieces, its cost, the notes on it, and what was read."""

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from localrun_testing.scripted_client import COMPLETION, INFO, RATES

from localrun.base.content import FilePart
from localrun.base.errors import EngineDiedError, PromptTooLongError, UsageError
from localrun.base.events import Completion, Work
from localrun.base.request import Request
from localrun.chat.journal import ChatStore
from localrun.chat.long_text.condensed import error_lines
from localrun.chat.long_text.in_parts import ReadingPlan, bytes_per_token, plan_reading
from localrun.chat.long_text.kept_notes import KeptNotes
from localrun.chat.long_text.part_of_text import part_of, split_part, take
from localrun.chat.long_text.part_reader import PartReader
from localrun.chat.long_text.pieces import cut, n_bytes
from localrun.chat.long_text.reading_speed import ReadingSpeed, reading_speed
from localrun.chat.long_text.ways_to_read import WaysToRead

SMALL = replace(INFO, ctx=1024)
LOG = "".join(f"{number:05} all is well\n" for number in range(1, 5001))
QUESTION = "Is anything wrong?"


def count(request: Request) -> int:
    """Four bytes a token, as a server might count."""
    return n_bytes(str(request.messages[0]["content"])) // 4


def plan(text: str = LOG, speed: ReadingSpeed | None = None) -> ReadingPlan:
    return plan_reading("server.log", text, QUESTION, SMALL, count, speed)


def text_in(request: Request) -> str:
    return str(request.messages[0]["content"]).partition("---\n")[2].rpartition("\n---")[0]


class Model:
    """Notes the first line of every piece that has the word, within its context."""

    def __init__(self, word: str = "", stops_after: int = 10**9) -> None:
        self.word, self.stops_after = word, stops_after
        self.asked: list[Request] = []

    def __call__(self, request: Request) -> Completion:
        self.asked.append(request)
        if count(request) + (request.max_tokens or 0) > SMALL.ctx:
            raise PromptTooLongError("too long")
        if len(self.asked) > self.stops_after:
            return replace(COMPLETION, text="half", stop_reason="cancelled")
        text = text_in(request)
        found = self.word in text if self.word else True
        return replace(COMPLETION, text=text.splitlines()[0][:200] if found else " nothing.", stop_reason="stop")


@given(st.text(st.sampled_from("ab語\n\r"), max_size=80), st.integers(1, 30))
def test_pieces_are_the_text_and_know_their_lines(text: str, most: int) -> None:
    pieces = list(cut(text, most))
    assert "".join(piece.text for piece in pieces) == text
    lines = text.split("\n")
    for piece in pieces:
        assert n_bytes(piece.text) <= most + 2  # a character may have three bytes
        assert piece.text in "\n".join(lines[piece.first - 1 : piece.last]) + "\n"
    assert all(before.last in (after.first, after.first - 1) for before, after in itertools.pairwise(pieces))


def test_every_line_is_read_once_and_each_prompt_fits() -> None:
    model = Model()
    reader = PartReader(plan(), model)
    list(reader.read())
    n_first = reader.n_read
    assert "".join(text_in(request) for request in model.asked[:n_first]) == LOG
    assert n_first == reader.n_parts == len(plan().pieces)
    assert all(count(request) + (request.max_tokens or 0) <= SMALL.ctx for request in model.asked)
    assert n_bytes(reader.digest().text) <= plan().digest_bytes + 200
    assert reader.summary == f"all of it read in {n_first} parts"


def test_only_pieces_that_have_something_are_noted() -> None:
    model = Model(word="04321")
    reader = PartReader(plan(), model)
    notes = [note for note in reader.read() if note.text]
    assert len(notes) == 1
    assert notes[0].first <= 4321 <= notes[0].last
    assert f"[lines {notes[0].first:,}–{notes[0].last:,}]" in reader.digest().text
    empty = PartReader(plan(), Model(word="there is no such word"))
    list(empty.read())
    assert "Nothing was noted" in empty.digest().text


def test_the_kinds_of_lines_go_along_where_they_are_few() -> None:
    log = LOG.replace("02500 all is well", "02500 the disk is full")
    reader = PartReader(plan(log), Model(word="there is no such word"))
    list(reader.read())
    digest = reader.digest().text
    assert "Nothing was noted" in digest
    assert digest.rstrip().endswith("[2,500] 02500 the disk is full"), "errors stand beside the question"
    assert n_bytes(digest) <= plan(log).digest_bytes + 200


def log_of_many_kinds(n_kinds: int) -> str:
    """With an error, and with lines of which each is the only one of its kind."""
    once = "".join(f"{number:05} {letters}a met b{letters}\n" for number, letters in enumerate(names(n_kinds), 5001))
    return LOG.replace("02500 all is well", "02500 the disk is full: no space left") + once


def names(n: int) -> list[str]:
    return ["".join(letters) for letters in itertools.islice(itertools.product("cdefgh", repeat=4), n)]


def test_errors_go_along_where_the_kinds_of_lines_are_many() -> None:
    reader = PartReader(plan(log_of_many_kinds(45)), Model(word="there is no such word"))
    list(reader.read())
    digest = reader.digest().text
    assert error_lines(digest) == ["[2,500] 02500 the disk is full: no space left"]
    assert "Nothing was noted" in digest
    assert " met " not in digest


@pytest.mark.parametrize(("n_kinds", "stands"), [(45, "kinds of all lines"), (120, "lines with words of errors")])
def test_lines_that_repeat_themselves_are_no_notes(n_kinds: int, stands: str) -> None:
    class Stutters(Model):
        def __call__(self, request: Request) -> Completion:
            return replace(super().__call__(request), text="The part that helps to answer:\n\n" * 20)

    reader = PartReader(plan(log_of_many_kinds(n_kinds)), Stutters())
    assert not any(note.text for note in reader.read())
    digest = reader.digest().text
    assert "helps to answer" not in digest
    assert error_lines(digest) == ["[2,500] 02500 the disk is full: no space left"]
    assert digest.count(" met ") == (n_kinds if stands == "kinds of all lines" else 0)
    assert reader.summary.endswith(f"the {stands} stand in their place")


def test_a_request_that_is_repeated_is_no_note() -> None:
    """A base model goes on with the text instead of answering it."""

    class Echoes(Model):
        def __call__(self, request: Request) -> Completion:
            answer = super().__call__(request)
            asked = str(request.messages[0]["content"]).partition("---")[0]
            found = "04321 the disk is full\n" if "04321" in text_in(request) else ""
            return replace(answer, text=f"{found}{asked}{asked[:80]}", stop_reason="length")

    reader = PartReader(plan(), Echoes())
    notes = [note.text for note in reader.read()]
    assert set(notes) == {""}
    assert not reader.is_of_use
    reader = PartReader(plan(LOG.splitlines()[4320]), Echoes())
    assert [note.text for note in reader.read()] == ["04321 the disk is full"]
    assert reader.is_of_use


def test_words_of_errors_in_a_text_that_is_no_log_are_no_errors() -> None:
    words = names(600)
    does = ("failed", *["visited"] * 199)
    novel = "".join(f"{one} {does[i % 200]} {words[i - 7]} and {words[i - 29]}\n" for i, one in enumerate(words))
    reader = PartReader(plan(novel), Model(word="there is no such word"))
    list(reader.read())
    assert "failed" in novel
    assert "failed" not in reader.digest().text


@pytest.mark.parametrize(("stutters_from", "n_read"), [(0, 8), (7, 15), (10**9, None)])
def test_a_model_that_repeats_itself_is_not_asked_to_the_end(stutters_from: int, n_read: int | None) -> None:
    """Its notes are of no use; the kinds of all lines stand in their place."""

    class Stutters(Model):
        def __call__(self, request: Request) -> Completion:
            answer = super().__call__(request)
            repeats = len(self.asked) > stutters_from
            return replace(answer, text="Errors:\n1. " + "12:00 INFO " * 20) if repeats else answer

    reader = PartReader(plan(), Stutters())
    notes = list(reader.read())
    assert reader.is_of_use == (n_read is None)
    assert reader.n_read == (n_read or reader.n_parts)
    if n_read is not None:
        assert not any(note.text for note in notes[stutters_from:])
        assert reader.summary.startswith(f"{n_read} of {reader.n_parts} parts read")
        assert reader.summary.endswith("the kinds of all lines stand in their place")
        assert reader.digest().name == "server.log condensed"
        assert "INFO" not in reader.digest().text
        assert "[×5,000, 1–5,000] # all is well" in reader.digest().text


def test_a_reading_that_is_stopped_says_how_far_it_came_and_keeps_its_notes() -> None:
    reader = PartReader(plan(LOG.replace("04900 all is well", "04900 the disk is full")), Model(stops_after=3))
    notes = list(reader.read())
    assert len(notes) == reader.n_read == 3
    assert reader.summary == f"3 of {reader.n_parts} parts read, up to line {notes[-1].last:,}"
    digest = reader.digest().text
    assert reader.summary in digest
    assert notes[2].text in digest
    assert digest.rstrip().endswith("[4,900] 04900 the disk is full"), "the kinds of lines are those of the whole file"


def test_an_engine_that_dies_leaves_what_was_noted_before() -> None:
    class Dies(Model):
        def __call__(self, request: Request) -> Completion:
            if len(self.asked) == self.stops_after:
                raise EngineDiedError("the engine is gone")
            return super().__call__(request)

    reader = PartReader(plan(), Dies(stops_after=2))
    notes = list(reader.read())
    assert reader.summary.endswith(f"up to line {notes[-1].last:,}, then: the engine is gone")
    assert notes[1].text in reader.digest().text
    with pytest.raises(EngineDiedError):
        list(PartReader(plan(), Dies(stops_after=0)).read())


def test_notes_survive_a_stop_while_they_are_condensed() -> None:
    n_pieces = len(plan().pieces)
    reader = PartReader(plan(), Model(stops_after=n_pieces + 1))
    list(reader.read())
    assert reader.summary == f"all of it read in {n_pieces} parts"
    assert reader.digest().text.count("[lines") == n_pieces
    assert n_bytes(reader.digest().text) <= plan().digest_bytes + 40 * n_pieces


def test_what_was_read_before_a_restart_is_not_read_again(home: Path) -> None:
    before = Model(stops_after=3)
    list(PartReader(plan(), before, KeptNotes(plan(), SMALL)).read())
    (file,) = (home / "chats" / "readings").iterdir()
    with file.open("a") as half:
        half.write('{"asked": "a line that a crash cut')
    kept = KeptNotes(plan(), SMALL)
    again = replace(plan(), n_known=kept.known(plan()))
    assert str(again).startswith(f"{len(plan().pieces)} parts, 3 of them read before, ≈")
    assert again.seconds is None
    after = Model()
    reader = PartReader(again, after, kept)
    list(reader.read())
    whole = PartReader(plan(), Model())
    list(whole.read())
    assert reader.digest() == whole.digest()
    asked = [text_in(request) for request in (*before.asked[:3], *after.asked)]
    assert "".join(asked[: len(plan().pieces)]) == LOG, "each part was read once"
    assert not file.exists(), "it was read to its end"


def test_notes_are_those_of_one_model_and_question_and_go_with_the_chats(home: Path) -> None:
    list(PartReader(plan(), Model(stops_after=3), KeptNotes(plan(), SMALL)).read())
    other = plan_reading("server.log", LOG, "Is all well?", SMALL, count)
    assert KeptNotes(plan(), SMALL).known(plan()) == 3
    assert KeptNotes(other, SMALL).known(other) == 0
    assert KeptNotes(plan(), replace(SMALL, fingerprint="another")).known(plan()) == 0
    store = ChatStore(home / "chats")
    chat = store.create()
    chat.add_user("Hi")
    store.erase(chat.id)
    assert KeptNotes(plan(), SMALL).known(plan()) == 0


def test_lines_of_a_part_count_as_in_the_file() -> None:
    for typed, first in (("200-300", 200), ("-100", 4901), ("/04321/", 1), ("-90000", 1)):
        part = part_of(typed)
        assert part.first_line(LOG) == first
        planned = plan_reading("server.log", take(LOG, part), QUESTION, SMALL, count, first_line=part.first_line(LOG))
        assert planned.pieces[0].first == first
        assert f"lines {first:,}–" in str(planned.request(planned.pieces[0]).messages[0]["content"])


def test_kinds_of_lines_of_a_part_count_as_in_the_file() -> None:
    log = LOG.replace("02500 all is well", "02500 the disk is full")
    part = part_of("2000-4500")
    text = take(log, part)
    (condensed, _) = WaysToRead(QUESTION, SMALL, count).of(FilePart("server.log", text), part.first_line(log))
    planned = plan_reading("server.log", text, QUESTION, SMALL, count, first_line=part.first_line(log))
    reader = PartReader(planned, Model(word="there is no such word"))
    list(reader.read())
    for found in (condensed.part.text, reader.digest().text):
        assert found.rstrip().endswith("[2,500] 02500 the disk is full")


def test_a_piece_that_is_longer_than_it_looked_is_cut_again() -> None:
    dense = plan_reading("server.log", LOG, QUESTION, SMALL, lambda request: count(request) // 3)
    reader = PartReader(dense, model := Model())
    list(reader.read())
    assert reader.n_parts > len(dense.pieces)
    read = "".join(text_in(one) for one in model.asked if count(one) + (one.max_tokens or 0) <= SMALL.ctx)
    assert read.startswith(LOG)


def test_the_cost_is_known_before() -> None:
    told = plan(speed=ReadingSpeed(reads=1000.0, writes=10.0))
    assert told.n_tokens > count_of(LOG)
    assert str(told).startswith(f"{len(told.pieces)} parts, ≈{told.n_tokens:,} tokens to read, ")
    assert told.seconds == told.n_tokens / 1000 + told.note_tokens * len(told.pieces) / 10
    assert plan().seconds is None
    with pytest.raises(UsageError, match="takes a question"):
        plan_reading("a", LOG, " ", SMALL, count)
    with pytest.raises(UsageError, match="no room"):
        plan_reading("a", LOG, QUESTION, replace(INFO, ctx=512), count)


def count_of(text: str) -> int:
    return n_bytes(text) // 4


@pytest.mark.parametrize("dense", [0, 1, 2])
def test_tokens_are_estimated_by_all_of_a_text_and_few_of_its_characters(dense: int) -> None:
    thirds = ["all is well\n" * 5000] * 3
    thirds[dense] = "0123456789\n" * 5000  # wherever that is: nearly each character is a token
    text = "".join(thirds)
    counted: list[int] = []

    def tokens(sample: str) -> int:
        counted.append(len(sample))
        n_digits = sum(map(str.isdigit, sample))
        return n_digits + (len(sample) - n_digits) // 4

    assert bytes_per_token(text, 4096, tokens) == pytest.approx(n_bytes(text) / tokens(text), rel=0.15)
    assert counted[0] <= 4096


def test_the_speed_is_that_of_an_answer_else_that_of_the_machine() -> None:
    answered = {"computed_tokens": 500, "prefill_tps": 300.0, "decode_tps": 20.0}
    assert reading_speed([{}, answered], INFO) == ReadingSpeed(300.0, 20.0)
    assert reading_speed([{**answered, "computed_tokens": 3}], INFO) is None
    found = reading_speed([], INFO, RATES)
    assert found is not None
    assert found.reads > found.writes > 0


def test_the_speed_is_that_of_tokens_that_see_many_others() -> None:
    work = Work(weight_bytes=10**8, macs=10**8, wide_macs=0, attention_macs=30_000)
    info = replace(INFO, work=work)
    short = {"computed_tokens": 100, "prefill_tps": 1000.0, "decode_tps": 100.0}
    at_once, seeing = reading_speed([short], info), reading_speed([short], info, seen=4000)
    assert at_once == ReadingSpeed(1000.0, 100.0)
    assert seeing is not None
    assert 250 < seeing.reads < 400
    assert 40 < seeing.writes < 60
    long = {**short, "computed_tokens": 8000}
    assert reading_speed([long], info, seen=4000) == at_once
    by_rates = reading_speed([], info, RATES, 4000), reading_speed([], info, RATES)
    assert by_rates[0] is not None
    assert by_rates[1] is not None
    assert by_rates[0].reads < by_rates[1].reads
    assert by_rates[0].writes < by_rates[1].writes
    assert str(plan(speed=by_rates[0])).split(", ")[-1].startswith("~"), "no answer has shown it"
    assert str(plan(speed=at_once)).split(", ")[-1].startswith("≈")


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("-2", "d\ne"),
        ("2-3", "b\nC word"),
        ("4-", "d\ne"),
        ("1", "a"),
        ("/WORD/", "1: a\n2: b\n3: C word\n4: d\n5: e"),
    ],
)
def test_a_part_of_a_text(typed: str, expected: str) -> None:
    assert split_part(f"a:b/x.log:{typed}") == ("a:b/x.log", part_of(typed))
    assert take("a\nb\nC word\nd\ne\n", part_of(typed)) == expected


def test_found_lines_say_where_some_are_left_out() -> None:
    text = "\n".join("hit" if number in (1, 9) else "-" for number in range(1, 12))
    assert take(text, part_of("/hit/")) == "1: hit\n2: -\n3: -\n…\n7: -\n8: -\n9: hit\n10: -\n11: -"


@pytest.mark.parametrize("typed", ["-0", "0-3", "5-2", "//", "x"])
def test_what_is_no_part(typed: str) -> None:
    with pytest.raises(UsageError, match="is no part"):
        part_of(typed)
    assert split_part("plain.log") == ("plain.log", None)
    with pytest.raises(UsageError, match="nothing of its 1 line"):
        take("a", part_of("7-9"))
