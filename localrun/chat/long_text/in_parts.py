"""Plans of reading a text that is longer than the context: in pieces, with a bounded note on each.

The notes, made for one question, go along with it in the place of the text.
"""

from collections.abc import Callable

from localrun.base.dataclass import dataclass
from localrun.base.errors import UsageError
from localrun.base.events import ModelInfo
from localrun.base.request import Request, Sampling
from localrun.chat.long_text.pieces import TextPiece, cut, n_bytes
from localrun.chat.long_text.reading_speed import ReadingSpeed
from localrun.chat.token_estimate import about_tokens, samples

Count = Callable[[Request], int]  # tokens of a prompt; 0 where unknown

NOTE_TOKENS = 192  # of the note of a piece, at most
LEAST_CONTEXT = 1024  # tokens
USUAL_CONTEXT = 4096  # where a server does not say
_NOTES_SHARE = 0.6  # of the context that notes may take beside question and answer
_FILL = 0.9  # of the room for a piece that is used, as its tokens are estimated
_ECHO = 16  # characters of a line of the request by which it is known again
NOTHING = "NOTHING"  # the note on a piece that has nothing to the question
_ASKED = """Question: {question}

Below is a part of {name}. Write down what in it helps to answer the question: facts, names, numbers, times and \
messages, word for word where they matter, in at most five short lines. If nothing in it helps, write only the word \
NOTHING.

---
{text}
---

What in this part helps to answer: {question}"""


@dataclass(frozen=True, slots=True)
class ReadingPlan:
    """The pieces of a text, and the cost of reading them for a question.

    `piece_bytes` fit a prompt and `digest_bytes` go along with the question, both by estimate; `n_tokens` are to be
    read at most, those around each piece included.
    """

    name: str
    question: str
    pieces: tuple[TextPiece, ...]
    piece_bytes: int
    digest_bytes: int
    note_tokens: int
    n_tokens: int
    speed: ReadingSpeed | None = None
    n_known: int = 0  # pieces that were read before, whose notes are on disk

    @property
    def seconds(self) -> float | None:
        """Expected time; None where no speed is known."""
        left = self.note_tokens * (len(self.pieces) - self.n_known)
        return self.speed.seconds(self.tokens_left, left) if self.speed else None

    @property
    def tokens_left(self) -> int:
        """Tokens to be read, without those of pieces that were read before."""
        return round(self.n_tokens * (1 - self.n_known / max(len(self.pieces), 1)))

    def request(self, piece: TextPiece) -> Request:
        """The request for the note on a piece."""
        return note_request(self.question, f"{self.name}, {piece.lines}", piece.text, self.note_tokens)

    def without_echo(self, note: str) -> str:
        """A note without the lines of the request that a model may repeat instead of answering it."""
        asked = _ASKED.format(question=self.question, name=self.name, text="")
        echoed = tuple(line[:_ECHO] for line in asked.splitlines() if len(line) >= _ECHO)
        return "\n".join(line for line in note.splitlines() if not line.strip().startswith(echoed)).strip()

    def __str__(self) -> str:
        """The cost in words."""
        n = len(self.pieces)
        known = f", {self.n_known:,} of them read before" if self.n_known else ""
        time = f", {self.speed.words(self.seconds)}" if self.speed and self.seconds is not None else ""
        return f"{n:,} part{'' if n == 1 else 's'}{known}, ≈{self.tokens_left:,} tokens to read{time}"


def plan_reading(
    name: str,
    text: str,
    question: str,
    info: ModelInfo,
    count: Count,
    speed: ReadingSpeed | None = None,
    first_line: int = 1,
) -> ReadingPlan:
    """Plan to read a text, whose first line has this number in its file, for a question. UsageError where there is no
    question, or no room for it."""
    if not question.strip():
        raise UsageError(f"to read {name} in parts takes a question", "say what you want to know of it")
    ctx = info.ctx or USUAL_CONTEXT
    note_tokens = min(NOTE_TOKENS, ctx // 8)
    around = count(note_request(question, name, "", note_tokens)) or about_tokens(_ASKED + 2 * question)
    room = ctx - around - note_tokens
    if ctx < LEAST_CONTEXT or room < ctx // 4:
        what = f"a context of {ctx:,} tokens has no room for this question and a part of {name}"
        raise UsageError(what, "ask a shorter question, or load the model with a larger context")
    per_token = bytes_per_token(text, ctx, lambda part: count(note_request(question, name, part, note_tokens)) - around)
    piece_bytes, digest_bytes = int(_FILL * room * per_token), int(_NOTES_SHARE * ctx * per_token)
    pieces = tuple(cut(text, piece_bytes, first_line))
    n_tokens = round(n_bytes(text) / per_token) + around * len(pieces)
    if (n_notes := note_tokens * len(pieces)) * per_token > digest_bytes:
        n_tokens += n_notes + around * -(-n_notes // room)
    return ReadingPlan(name, question, pieces, piece_bytes, digest_bytes, note_tokens, n_tokens, speed)


def bytes_per_token(text: str, ctx: int, count: Callable[[str], int]) -> float:
    """Bytes of a token in a text, by samples of it; by what is usual where `count` gives 0."""
    sample = samples(text, ctx)  # as many characters as the context has tokens
    n_sample = count(sample)
    return n_bytes(sample) / (n_sample if n_sample > 0 else about_tokens(sample) or 1)


def note_request(question: str, name: str, text: str, note_tokens: int) -> Request:
    """Request for a note on a piece of `name`."""
    asked = _ASKED.format(question=question, name=name, text=text)
    return Request(
        messages=({"role": "user", "content": asked},),
        sampling=Sampling(temperature=0.0),
        max_tokens=note_tokens,
        think="off",
        stop_on_loop=True,
    )
