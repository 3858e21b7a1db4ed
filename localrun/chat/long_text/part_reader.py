"""Reading in parts, as planned: a note on each piece, and notes on the notes until they fit. Of a text whose lines are
alike, as a log's, the kinds of lines go along, or those of errors: they stay whatever the notes leave out."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from localrun.base.content import FilePart
from localrun.base.dataclass import dataclass
from localrun.base.errors import LocalrunError, PromptTooLongError
from localrun.base.events import Completion
from localrun.base.request import Request
from localrun.chat.long_text.condensed import Kinds, only_errors
from localrun.chat.long_text.in_parts import NOTHING, ReadingPlan
from localrun.chat.long_text.kept_notes import KeptNotes
from localrun.chat.long_text.pieces import TextPiece, lines_in_words, n_bytes

AskModel = Callable[[Request], Completion]

_KINDS_SHARE = 2  # the part of a digest that kinds of lines may take beside notes
_WORTH = 0.5  # of the text: one with kinds of lines, as a log, has fewer bytes of them
_STUTTER = re.compile(r"(\S[^\n]{0,120}?\s+)\1{3}")  # the same words, or the same line, four times on end
_MOST_STUTTERS = 0.25  # of the notes: a model that repeats itself more often is too small to note anything
_TRIED = 8  # notes after which one that mostly repeats itself is not asked for more


@dataclass(frozen=True, slots=True)
class Note:
    """A finding of the model from line `first` to `last`; an empty text for none."""

    first: int
    last: int
    text: str

    def __str__(self) -> str:
        return f"[{lines_in_words(self.first, self.last)}]\n{self.text}"


@dataclass(frozen=True, slots=True)
class _Facts:
    """Lines that are known without the model, and what they `are`; false where there are none."""

    are: str = ""
    text: str = ""

    def __bool__(self) -> bool:
        return bool(self.text)


class PartReader:
    """`ask` answers a request. One that the user stops ends the reading, as does one that fails, which is the `problem`
    then; what was noted before counts. Notes that are `kept` are not asked for."""

    def __init__(self, plan: ReadingPlan, ask: AskModel, kept: KeptNotes | None = None) -> None:
        self.plan = plan
        self.n_parts = len(plan.pieces)  # as far as is known: one that is too long becomes several
        self.n_read = 0
        self.is_stopped = False
        self.problem = ""
        self._ask, self._kept = ask, kept
        self._last_line = 0
        self._notes: list[Note] = []
        self._n_stutters = 0

    def read(self) -> Iterator[Note]:
        """Read all; each note as it comes, those on notes included. Where they will be of no use, no more are asked
        for."""
        for note in self._noted(self.plan.pieces):
            self.n_read, self._last_line = self.n_read + 1, note.last
            self._keep(note)
            yield note
            if self._is_too_small and self._instead:
                break
        while self.is_of_use and not self.is_stopped and len(self._notes) > 1 and self._size() > self._room:
            before, self._notes = self._notes, []
            for note in self._noted(_batches(before, self.plan.piece_bytes)):
                self._keep(note)
                yield note
            if self.is_stopped:
                self._notes = before
        if self._kept is not None and not self.is_stopped:
            self._kept.forget()

    @property
    def is_of_use(self) -> bool:
        """Whether the notes are, as far as is known; where not, the kinds of lines stand in their place."""
        return self._n_stutters <= _MOST_STUTTERS * self.n_read or not self._instead

    @property
    def _is_too_small(self) -> bool:
        """Whether the model mostly repeats itself, or has done so too often for all that is left."""
        mostly = self.n_read >= _TRIED and self._n_stutters > self.n_read / 2
        return mostly or self._n_stutters > _MOST_STUTTERS * self.n_parts

    @property
    def summary(self) -> str:
        """The extent of the reading, in words."""
        why = f", then: {self.problem}" if self.problem else ""
        if not self.is_of_use:
            why += f"; the notes repeat themselves and are left out: the {self._instead.are} stand in their place"
        if self.n_read < self.n_parts:
            return f"{self.n_read:,} of {self.n_parts:,} parts read, up to line {self._last_line:,}{why}"
        return f"all of it read in {self.n_parts:,} part{'' if self.n_parts == 1 else 's'}{why}"

    def digest(self) -> FilePart:
        """The notes as a file, shortened alike where they are too many because the reading was stopped; the kinds of
        lines alone where they are of no use."""
        if not self.is_of_use:
            return FilePart(f"{self.plan.name} condensed", self._instead.text)
        most = self._room // max(len(self._notes), 1)
        fits = self._size() <= self._room
        notes = [text if fits or len(text) <= most else f"{text[:most]}…" for text in map(str, self._notes)]
        notes = notes or ["Nothing was noted that helps to answer the question."]
        heading = f"Notes on {self.plan.name} for the question “{self.plan.question}”, {self.summary}:"
        return FilePart(f"{self.plan.name} in parts", "\n\n".join(filter(None, [heading, *notes, self._kinds])))

    @property
    def _room(self) -> int:
        """Bytes that the notes may take."""
        return self.plan.digest_bytes - n_bytes(self._kinds)

    @cached_property
    def _kinds(self) -> str:
        """The kinds of lines that go along with the notes."""
        return self._facts(self.plan.digest_bytes // _KINDS_SHARE).text

    @cached_property
    def _instead(self) -> _Facts:
        """The lines that stand in the place of the notes."""
        return self._facts(self.plan.digest_bytes)

    def _facts(self, most: int) -> _Facts:
        """The kinds of all lines, those that the model did not come to included, in at most so many bytes: where they
        are too many, only those with words of errors, if the lines are alike at all. Else nothing."""
        if not self._table.are_clear:
            return _Facts()
        facts = _Facts("kinds of all lines", self._table.condensed(most).text)
        if (size := n_bytes(facts.text)) > most:
            whole = sum(n_bytes(piece.text) for piece in self.plan.pieces)
            errors = only_errors(facts.text) if size <= _WORTH * whole else ""
            facts = _Facts("lines with words of errors", errors)
        return facts if n_bytes(facts.text) <= most else _Facts()

    @cached_property
    def _table(self) -> Kinds:
        pieces = self.plan.pieces
        return Kinds("".join(piece.text for piece in pieces), pieces[0].first if pieces else 1)

    def _noted(self, pieces: Sequence[TextPiece]) -> Iterator[Note]:
        """A note on each piece; one that turns out to be too long is cut again."""
        left = list(pieces)
        while left and not self.is_stopped:
            piece = left.pop(0)
            request = self.plan.request(piece)
            known = self._kept.note(request) if self._kept is not None else None
            if known is not None:
                yield self._note(piece, known)
                continue
            try:
                answer = self._ask(request)
            except PromptTooLongError:
                smaller = piece.smaller()
                if len(smaller) < 2:
                    raise
                left[:0] = smaller
                self.n_parts += len(smaller) - 1 if self.n_read < self.n_parts else 0
                continue
            except LocalrunError as error:
                if not self.n_read:
                    raise
                self.is_stopped, self.problem = True, error.message
                return
            self.is_stopped = answer.stop_reason == "cancelled"
            if not self.is_stopped:
                found = _found(answer)
                if self._kept is not None:
                    self._kept.keep(request, found)
                yield self._note(piece, found)

    def _note(self, piece: TextPiece, found: str) -> Note:
        """The note on a piece; empty where the model only repeats itself, or what it was asked."""
        said = self.plan.without_echo(found)
        stutters = _STUTTER.search(said) is not None or (bool(found) and not said)
        self._n_stutters += stutters
        return Note(piece.first, piece.last, "" if stutters else said)

    def _keep(self, note: Note) -> None:
        if note.text:
            self._notes.append(note)

    def _size(self) -> int:
        return sum(n_bytes(str(note)) + 2 for note in self._notes)


def _found(answer: Completion) -> str:
    """The text of a note; empty where the piece has nothing."""
    text = answer.text.strip()
    if text.strip(" .*\"'").upper().startswith(NOTHING) and len(text) < 2 * len(NOTHING):
        return ""
    return f"{text}…" if text and answer.stop_reason == "length" else text


def _batches(notes: Sequence[Note], most: int) -> list[TextPiece]:
    """Notes one below the other in texts of at most `most` bytes, two at least in each."""
    batches: list[list[Note]] = [[]]
    for note in notes:
        size = sum(n_bytes(str(one)) + 2 for one in (*batches[-1], note))
        if len(batches[-1]) > 1 and size > most:
            batches.append([])
        batches[-1].append(note)
    return [TextPiece("\n\n".join(map(str, batch)), batch[0].first, batch[-1].last) for batch in batches]
