"""Diagnosis of a slow answer: one cause, from measured figures, and no more than they support. Torch-free."""

from collections.abc import Mapping
from typing import Literal

from localrun.base.dataclass import dataclass
from localrun.diagnose.facts import Facts, Stage
from localrun.diagnose.pace import Pace, pace

Cause = Literal[
    "changed",  # the chat's beginning, or a turn of it, is not what it was
    "evicted",  # what was known had to make room
    "new",  # most of the prompt was never read before
    "weights",  # memory is the limit, and weights are most of what is read
    "cache",  # memory is the limit, and the cache is most of it
    "arithmetic",
    "attention",  # arithmetic is the limit, and the tokens before are most of it
    "overhead",  # neither memory nor arithmetic was busy
    "others",  # other programs took the processors
    "stopped",  # a limit of the container did
    "heat",  # the processor was slowed down
    "disk",  # weights do not fit memory
    "paging",  # memory ran out
    "beside",  # other answers were computed in the same steps
    "queue",  # other answers were first
    "waiting",  # for an unknown reason
    "restore",
    "text",
    "unknown",
]

_TOPICS: Mapping[Cause, str] = {
    "changed": "reuse",
    "evicted": "reuse",
    "new": "reuse",
    "restore": "reuse",
    "weights": "precision",
    "cache": "cache",
    "attention": "cache",
    "disk": "memory",
    "paging": "memory",
    "beside": "batch",
    "queue": "batch",
}

SLOW_FIRST_MS = 2000.0  # to the first token
SLOW_TOKEN_MS = 125.0  # a token: slower than one reads
SHORT_WAIT_MS = 250.0  # less is the way of a question to the engine and of a word to the screen
CROWDED, SPARE = 0.25, 0.25  # others' share of all processors that counts, while no more than this is idle
FAULT_MS = 0.1  # that a disk takes for a page, at least
WORTH = 0.25  # of a stage's time, or more, that a cause has to explain
MOST = 0.5  # of tokens, bytes or multiply-adds


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The longest stage, among the slow ones if any is slow, and its cause.

    `share`: of what memory or arithmetic can do at best, None where unknown; `slow`: slower than people like to wait or
    read.
    """

    stage: Stage
    milliseconds: float
    cause: Cause
    share: float | None = None
    pace: Pace | None = None
    slow: bool = False

    @property
    def topic(self) -> str:
        """The page of Explain that tells most about the cause."""
        return _TOPICS.get(self.cause, "phases")


def diagnose(facts: Facts) -> Diagnosis | None:
    """Diagnose an answer; None where no stage took any time. A short wait needs no diagnosis."""
    stages, slow = facts.stages, _slow_stages(facts)
    told = slow or [one for one in stages if one != "wait" or stages[one] >= SHORT_WAIT_MS]
    stage = max(told, key=lambda one: stages[one], default=None)
    if stage is None or not stages[stage]:
        return None
    found = _pace(facts, stage)
    cause = _cause(facts, stage, found)
    return Diagnosis(stage, stages[stage], cause, found.share if found else None, found, stage in slow)


def _slow_stages(facts: Facts) -> list[Stage]:
    """Stages that make the answer slow: before the first token, and after it."""
    before: list[Stage] = [stage for stage in facts.stages if stage != "decode"]
    found: list[Stage] = before if sum(facts.stages[stage] for stage in before) > SLOW_FIRST_MS else []
    n_steps = facts.completion_tokens - 1
    a_token = facts.stages.get("decode", 0.0) / n_steps if n_steps > 0 else 0.0
    return [*found, "decode"] if a_token > SLOW_TOKEN_MS else found


def _pace(facts: Facts, stage: Stage) -> Pace | None:
    seconds = facts.stages[stage] / 1000
    if stage == "prefill":
        n = facts.computed_tokens
        return pace("prefill", facts.work, n, seconds, facts.rates, seen=facts.cached_tokens + n / 2)
    if stage == "decode":
        return pace("decode", facts.work, facts.n_steps, seconds, facts.rates, facts.held_tokens, facts.kv_bytes)
    return None


def _cause(facts: Facts, stage: Stage, found: Pace | None) -> Cause:
    if stage == "wait":
        return "queue" if facts.meanwhile.ahead else "waiting"
    if stage == "restore":
        return "restore"
    if stage in ("template", "tokenise"):
        return "text"
    at_its_limit = found is not None and found.bound in ("memory", "arithmetic")
    held_up = None if at_its_limit else _held_up(facts, stage)
    if held_up is not None:
        return held_up
    again = _read_again(facts) if stage == "prefill" else None
    return again or _limit(found, stage)


def _held_up(facts: Facts, stage: Stage) -> Cause | None:
    """Obstacle to an answer that kept neither memory nor arithmetic busy."""
    around, took = facts.meanwhile, facts.stages[stage]
    n_own = facts.computed_tokens if stage == "prefill" else facts.completion_tokens
    if around.stopped_ms >= WORTH * took:
        return "stopped"
    if around.hot_ms >= WORTH * took:
        return "heat"
    if (around.page_faults or 0) * FAULT_MS >= WORTH * took:
        return "disk" if facts.weights_on_disk else "paging"
    shared, idle = around.others_share, around.idle_share
    if shared is not None and idle is not None and shared >= CROWDED and idle <= SPARE:
        return "others"
    return "beside" if around.beside_tokens > n_own > 0 else None


def _read_again(facts: Facts) -> Cause | None:
    """Why most of the prompt was computed, where it was."""
    missing = facts.prompt_tokens - facts.cached_tokens
    if not facts.prompt_tokens or missing < MOST * facts.prompt_tokens:
        return None
    at = facts.meanwhile.changed_at
    if at is not None and facts.cached_tokens <= at < MOST * facts.prompt_tokens:
        return "changed"
    return "evicted" if facts.meanwhile.evicted else "new"


def _limit(found: Pace | None, stage: Stage) -> Cause:
    bound = found.bound if found else None
    if found is None or bound is None:
        return "unknown"
    if bound == "memory":
        return "cache" if found.extra > MOST else "weights"
    if bound == "arithmetic":
        return "attention" if found.extra > MOST else "arithmetic"
    return "overhead"
