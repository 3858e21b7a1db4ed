"""Plays conversations as people have them: questions, second tries, edits, branches, two chats at once.

What is asked is decided by a seed and by what was answered. The same requests go to an engine that keeps prefixes and
to one that does not: every id must be the same.
"""

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass

from localrun.base.events import Completion, Done
from localrun.base.request import Request, RequestMessage, Sampling
from localrun.client.local import LocalClient

WORDS = "the cache holds what was said before and a window sees only some of it ab 天 😀 naïve \n — 3.14"
MOVES = {
    "go on": 8,
    "regenerate": 3,
    "edit the last turn": 3,
    "edit an earlier turn": 2,
    "switch branch": 3,
    "other chat": 4,
}
RECENT = 6  # branches that are gone back to


@dataclass(frozen=True)
class Talk:
    """How much is said: words of a question, now and then three times as many, and tokens of an answer, at most."""

    question: int = 40
    answer: int = 48

    @property
    def longest(self) -> int:
        """Tokens of a turn."""
        return 6 * 3 * self.question + self.answer


LONG, SHORT = Talk(), Talk(question=4, answer=6)  # SHORT: for devices that are emulated


@dataclass(frozen=True)
class Exchange:
    """A question, its answer, and all ids up to the answer's end."""

    question: str
    answer: RequestMessage
    known_ids: tuple[int, ...]


Branch = tuple[Exchange, ...]


@dataclass(frozen=True)
class Played:
    """One request and what it took; `background`: rows computed after it, before the next one."""

    move: str
    prompt_ids: tuple[int, ...]
    answer_ids: tuple[int, ...]
    cached: int
    replayed: int
    computed: int
    background: int
    note: str
    ttft_ms: float
    cold_ttft_ms: float
    equal: bool

    @property
    def reused(self) -> float:
        return self.cached / len(self.prompt_ids)


class Player:
    """Two chats, each a list of branches; `current` is the one being read."""

    def __init__(self, seed: int, ctx: int, logit_bias: dict[int, float] | None = None, talk: Talk = LONG) -> None:
        self.dice = random.Random(seed)
        self.ctx, self.logit_bias, self.talk = ctx, logit_bias or {}, talk
        self.chats: list[list[Branch]] = [[()], [()]]
        self.chat = 0
        self.current: Branch = ()
        self.question = ""

    def next_request(self) -> tuple[str, Request]:
        """A move and its request; `take` what comes of it before the next one."""
        move = self.dice.choices(list(MOVES), list(MOVES.values()))[0] if self.current else "go on"
        self.question = self._words()
        if move == "regenerate":
            self.question = self.current[-1].question
        if move in ("regenerate", "edit the last turn"):
            self.current = self.current[:-1]
        elif move == "edit an earlier turn":
            self.current = self.current[: self.dice.randrange(len(self.current))]
        elif move == "switch branch":
            self.current = self.dice.choice(self.chats[self.chat][-RECENT:])
        elif move == "other chat":
            self.chat = 1 - self.chat
            self.current = self.chats[self.chat][-1]
        return move, self._request()

    def take(self, done: Done) -> None:
        """The answer to the last request."""
        c = done.completion
        thoughts = {"reasoning_content": c.thinking} if c.thinking else {}
        answer = {"role": "assistant", "content": c.text, **thoughts}
        self.current = (*self.current, Exchange(self.question, answer, done.prompt_ids + c.token_ids))
        self.chats[self.chat].append(self.current)

    def _request(self) -> Request:
        while self.current and len(self.current[-1].known_ids) + self.talk.longest > self.ctx:
            self.current = self.current[len(self.current) // 2 + 1 :]  # as a chat that drops its oldest turns
        messages: list[RequestMessage] = []
        for exchange in self.current:
            messages += [{"role": "user", "content": exchange.question}, exchange.answer]
        return Request(
            messages=(*messages, {"role": "user", "content": self.question}),
            sampling=Sampling(self.dice.choice((0.0, 0.8)), seed=self.dice.randrange(1000), logit_bias=self.logit_bias),
            max_tokens=self.dice.randint(1, self.talk.answer),
            known_ids=self.current[-1].known_ids if self.current else (),
            now=0.0,
        )

    def _words(self) -> str:
        n = self.dice.randint(1, self.talk.question) * self.dice.choice((1, 1, 1, 3))
        return " ".join(self.dice.choices(WORDS.split(" "), k=n))


class Meter:
    """Counts the rows an engine computes, those nobody waits for apart."""

    def __init__(self, client: LocalClient) -> None:
        self.engine, self.rows, self.background = client.model.engine, 0, 0
        run = self.engine.runner.run

        def counted(plan, cancel=None):  # type: ignore[no-untyped-def]
            logits = run(plan, cancel)
            for work in plan.work:
                sequence, n = work.sequence, work.n
                if sequence.request.is_warm_up:
                    self.background += n
                elif sequence.n_computed < sequence.n_prompt:
                    self.rows += n
            return logits

        self.engine.runner.run = counted  # type: ignore[method-assign]

    def wait_until_idle(self) -> None:
        """Wait, as for a reader, until what is computed ahead is done."""
        while self.engine.scheduler.busy or not self.engine.inbox.empty():
            time.sleep(0.0005)

    def take(self) -> tuple[int, int]:
        counted, self.rows, self.background = (self.rows, self.background), 0, 0
        return counted


def play(warm: LocalClient, cold: LocalClient, seed: int, turns: int, talk: Talk = LONG) -> Iterator[Played]:
    """`turns` requests, each on both engines, one after the other."""
    player, meter = Player(seed, warm.info.ctx, short_answers(warm), talk), Meter(warm)
    for _ in range(turns):
        move, request = player.next_request()
        done = finish(warm, request)
        meter.wait_until_idle()
        computed, background = meter.take()
        fresh = finish(cold, request)
        found, expected = done.completion, fresh.completion
        yield Played(
            move,
            done.prompt_ids,
            found.token_ids,
            found.cached_tokens or 0,
            found.cache.replayed_tokens,
            computed,
            background,
            found.cache.cache_note,
            found.timings.ttft_ms,
            expected.timings.ttft_ms,
            equal=(done.prompt_ids, said(found)) == (fresh.prompt_ids, said(expected)) and expected.cached_tokens == 0,
        )
        player.take(done)


def said(completion: Completion) -> tuple[object, ...]:
    return completion.token_ids, completion.text, completion.thinking, completion.stop_reason


def finish(client: LocalClient, request: Request) -> Done:
    *_, last = client.generate(request)
    assert isinstance(last, Done)
    return last


def short_answers(client: LocalClient) -> dict[int, float]:
    """A bias that has random models end thoughts and answers now and then."""
    tokenizer = client.model.text.tokenizer
    ids = {tokenizer.token_text(i): i for i in range(tokenizer.vocab_size)}
    wanted = {"</think>": 3.0, "<|im_end|>": 1.5}
    return {ids[text]: bias for text, bias in wanted.items() if text in ids}
