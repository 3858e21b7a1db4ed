"""The last line of a message: progress, outcome, or reason for waiting; empty where that is plain."""

import time
from typing import TYPE_CHECKING

from textual.content import Content

from localrun.base.content import Content as MessageContent
from localrun.base.content import FilePart, has_calls
from localrun.base.errors import PromptTooLongError
from localrun.base.events import Loop
from localrun.base.image_words import looking_words
from localrun.base.sanitize import clean
from localrun.base.units import ms
from localrun.diagnose.diagnosis import diagnose
from localrun.diagnose.facts import facts_of
from localrun.diagnose.words import plainly
from localrun.fit.rates import Rates
from localrun_tui.screens.chat.status_line import phase_words
from localrun_tui.widgets.meters import bar

if TYPE_CHECKING:
    from localrun.chat.tree import Message
    from localrun.chat.turn import Answer
    from localrun_tui.state.session import Session

_MOST_KINDS = 5  # of errors, below an answer
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


def thinking_title(answer: "Answer") -> str:
    """How long an answer on its way has been thought about, or was until its text began."""
    if answer.begun is not None and answer.begun.text:  # by then it had been
        return "Thought"
    seconds = (answer.first_word or time.monotonic()) - answer.began
    return f"{'Thought for' if answer.first_word else 'Thinking …'} {ms(seconds * 1000)}"


def live_note(answer: "Answer") -> Content:
    """Note of an answer under way."""
    spinner = _SPINNER[int(time.monotonic() * 10) % len(_SPINNER)]
    if answer.loop is not None:
        return Content.styled(f"⟳ {answer.loop}", "$text-warning")
    prompt = answer.prompt
    if answer.phase == "writing":
        return Content()
    if answer.image is not None and answer.phase == "looking":
        return Content.styled(f"{spinner} {looking_words(answer.image)}", "$foreground-muted")
    if answer.phase != "reading" or prompt is None:
        return Content.styled(f"{spinner} {phase_words(answer.phase)}", "$foreground-muted")
    prefill = prompt.last
    parts = [f" {prefill.done:,} of {prefill.total:,} tokens"]
    if prefill.cached:
        parts.append(f"{prefill.cached:,} from the cache")
    if (left := prompt.seconds_left(time.monotonic())) is not None:
        parts.append(f"{ms(left * 1000)} left")
    return Content.assemble(
        (f"{spinner} reading ", "$foreground-muted"),
        bar(prefill.done / prefill.total, 10, "$warning"),
        (" · ".join(parts), "$foreground-muted"),
    )


def unanswered_note(session: "Session") -> Content:
    """Note of an unanswered last question."""
    words = "◌ not answered: Ctrl+R asks again"
    turn = session.turn
    if turn is not None and turn.chat is session.chat and isinstance(turn.error, PromptTooLongError):
        words = "◌ was too long for the model: Ctrl+R asks again"
    if session.info is None:
        loading = session.model.loading
        words = "◌ waits until the model is loaded" if loading else "◌ waits for a model: Ctrl+O chooses a model"
    return Content.styled(words, "$text-warning")


def counted_note(question: MessageContent) -> Content:
    """The errors of condensed logs that a question came with. A long answer hides those above it, and may be wrong."""
    from localrun.chat.long_text.condensed import error_kinds

    lines = []
    for part in question:
        if isinstance(part, FilePart) and (kinds := error_kinds(part.text)):
            more = [f"… and {len(kinds) - _MOST_KINDS:,} more kinds"] if len(kinds) > _MOST_KINDS else []
            lines += [f"Counted in {part.name}, not by the model:", *kinds[:_MOST_KINDS], *more]
    return Content.styled("\n".join(clean(line, keep_newlines=False) for line in lines), "$foreground-muted")


def note_of(message: "Message", why_again: str, rates: Rates | None) -> Content:
    """Note of a kept message. `why_again`: the reason that most of a chat that was read before had to be read again.
    `rates`: those of the machine, where known."""
    if message.role != "assistant":
        return Content()
    stats = message.stats
    if stats.get("error"):
        reason = clean(str(stats["error"]), keep_newlines=False)
        words = f"⚠ cut off: {reason}. What had come is kept"
        words += "." if stats.get("backend") == "remote" else "; your next message starts the engine again."
        return Content.styled(words, "$text-error")
    if message.unfinished:
        return Content.styled("⚠ cut off: localrun ended while this was written. What had come is kept.", "$text-error")
    if message.interrupted:
        return Content.styled("◼ stopped", "$text-warning")
    if period := stats.get("loop_period"):
        ended = "◼ stopped" if stats.get("stop_reason") == "loop" else "⟳"
        return Content.styled(f"{ended}: {Loop(int(period))}", "$text-warning")
    parts = []
    if stats.get("stop_reason") == "length":
        n_tokens = int(stats.get("prompt_tokens") or 0) + int(stats.get("completion_tokens") or 0)
        full = n_tokens >= int(stats.get("ctx") or 0)
        longest = "◼ ended at the longest answer that is set: g or /continue goes on"
        parts.append("◼ the context is full" if full else longest)
    elif not message.text.strip() and not has_calls(message.content):
        ended = "◌ it thought, and said nothing" if message.thinking else "◌ it ended without a word"
        parts.append(f"{ended}: r or /retry asks again")
    facts = facts_of(stats, rates)
    found = diagnose(facts) if facts else None
    if facts and found and (why := plainly(found, facts)) and not (why_again and found.cause == "new"):
        parts.append(why)
    elif why_again:
        parts.append(f"most of the chat was read again: {clean(why_again, keep_newlines=False)}")
    return Content.styled(" · ".join(parts), "$foreground-muted")
