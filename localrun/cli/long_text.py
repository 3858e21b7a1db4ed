"""Reading a text that is longer than the context, in parts: its cost, its progress, and a stop by Ctrl-C."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from localrun.base.content import FilePart, TextPart, text_of
from localrun.base.errors import PromptTooLongError, UsageError
from localrun.base.events import Completion, Done, Prefill
from localrun.base.request import Request
from localrun.chat.long_text.in_parts import ReadingPlan, plan_reading
from localrun.chat.long_text.kept_notes import KeptNotes
from localrun.chat.long_text.part_reader import PartReader
from localrun.chat.long_text.reading_pace import ReadingPace
from localrun.chat.long_text.reading_speed import reading_speed
from localrun.chat.long_text.ways_to_read import SpeedAt, WaysToRead
from localrun.cli.console import note, show_progress
from localrun.cli.session import CancelOnInterrupt
from localrun.client.interface import EngineClient, Generation
from localrun.fit.machine_rates import machine_rates
from localrun.fit.rates import LEAST_TOKENS

_TRIAL = 8  # the part of the context, in characters, that shows how fast a model reads


def read_in_parts(
    client: EngineClient,
    name: str,
    text: str,
    question: str,
    shorter: str,
    answers: Iterable[Mapping[str, Any]] = (),
) -> FilePart:
    """Read a text in parts and return the notes on it. Ctrl-C ends the reading; what was read until then counts.
    Raises UsageError where that is nothing.

    `shorter` is how the text is read condensed instead; `answers` are stats of earlier answers, the last one first.
    """
    count = partial(_count, client)
    plan = plan_reading(name, text, question, client.info, count)
    speed_at = _speed_at(client, plan, answers)
    plan = replace(plan, speed=speed_at(client.info.ctx // 2))
    kept = KeptNotes(plan, client.info)
    plan = replace(plan, n_known=kept.known(plan))
    note(f"({name}: {plan}; Ctrl-C ends the reading, and what was read counts)")
    if (condensed := WaysToRead(question, client.info, count, speed_at).condensed(FilePart(name, text))) is not None:
        note(f"({shorter} instead: {condensed.cost}; {condensed.about})")
    pace = ReadingPace(plan)
    with CancelOnInterrupt() as ctrl_c:

        def ask(request: Request) -> Completion:
            return _completion(ctrl_c.watch(client.generate(request)), tell)

        def tell(share: float) -> None:
            show_progress(f"({pace.words(reader, share)})")

        reader = PartReader(plan, ask, kept)
        for _ in reader.read():
            tell(0.0)
    show_progress("")
    if not reader.n_read:
        raise UsageError(f"nothing of {name} was read", "ask again, and let it read a part at least")
    note(f"({name}: {reader.summary})")
    return reader.digest()


def prompt_in_parts(client: EngineClient, question: str, texts: Iterable[tuple[str, str]]) -> str:
    """The question with notes in the place of each text that does not fit beside it. `texts` have names."""
    fits = _fits(client, question, texts := list(texts))
    files = [
        FilePart(name, text) if fits else read_in_parts(client, name, text, question, "--condensed")
        for name, text in texts
    ]
    return text_of((*files, TextPart(question)))


def _fits(client: EngineClient, question: str, texts: list[tuple[str, str]]) -> bool:
    """Whether all of it fits the context, with an answer as long as a quarter of it."""
    whole = text_of((*(FilePart(*one) for one in texts), TextPart(question)))
    request = Request(messages=({"role": "user", "content": whole},))
    try:
        n_tokens = _count(client, request)
    except PromptTooLongError:
        return False
    return 0 < n_tokens <= 0.75 * client.info.ctx


def _count(client: EngineClient, request: Request) -> int:
    view = client.preview(request)
    return view.n_tokens if view is not None else 0


def _completion(generation: Generation, tell: Callable[[float], object]) -> Completion:
    """The end of an answer; `tell` gets the share of the prompt that is read."""
    for event in generation:
        if isinstance(event, Prefill):
            tell(event.done / max(event.total, 1))
        elif isinstance(event, Done):
            return event.completion
    raise AssertionError("a stream ends with Done or raises")


def _speed_at(client: EngineClient, plan: ReadingPlan, answers: Iterable[Mapping[str, Any]]) -> SpeedAt:
    """How fast parts are read and noted. Where nothing has shown that yet, the first part is begun: what is read of it
    stays in the cache."""
    info, rates, known = client.info, machine_rates(), list(answers)
    speed = reading_speed(known, info, rates)
    if speed is not None and not speed.is_measured:
        first = plan.pieces[0]
        request = plan.request(replace(first, text=first.text[: info.ctx // _TRIAL]))
        show_progress("(how fast does it read?)")
        completion = _completion(client.generate(replace(request, max_tokens=LEAST_TOKENS)), lambda share: None)
        known = [completion.flat()]
    return partial(reading_speed, known, info, rates)
