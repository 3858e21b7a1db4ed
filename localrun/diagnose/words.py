"""A diagnosis in words: one line in an engine's terms, and one that says what to do. Torch-free."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from localrun.base.sentence import sentence
from localrun.base.units import gib, ms, percent
from localrun.diagnose.diagnosis import Cause, Diagnosis
from localrun.diagnose.facts import Facts

FEWEST_STEPS = 8  # of an answer that has a speed
SURE = 0.6  # of the bandwidth: from here on more threads do not help
_FEW_BITS = 4.5  # a weight, of a 4-bit precision with its scales
_WORTH = 1.3  # times as fast, or more, that is worth another file


class DiagnosisWords(NamedTuple):
    """The problem, its reason, and a remedy, which is empty where unknown."""

    title: str
    why: str
    remedy: str = ""

    @property
    def line(self) -> str:
        return f"{self.title}: {self.why}" + (f"; {self.remedy}" if self.remedy else "")


def in_words(found: Diagnosis, facts: Facts) -> DiagnosisWords:
    """Describe the diagnosis in the engine's terms."""
    return _WORDS[found.cause](found, facts)


def plainly(found: Diagnosis, facts: Facts) -> str:
    """Advice below a slow answer; empty where nothing is slow, or the cause is unknown."""
    if not found.slow:
        return ""
    what = "slow" if found.stage == "decode" else "a slow start"
    if found.cause == "changed":
        return f"{what}: the chat was read again, since {_changed(facts)}"
    return f"{what}: {_PLAIN[found.cause]}" if found.cause in _PLAIN else ""


_PLAIN: Mapping[Cause, str] = {
    "evicted": "earlier text had to make room in the cache; fewer long chats at a time, or a smaller model, leave more",
    "new": "all of this text was new to the model; what comes next in this chat begins sooner",
    "weights": "this is as fast as this computer's memory allows; a smaller precision or model is faster",
    "cache": "the chat is long, and all of it is looked at for each word; a new chat is faster",
    "arithmetic": "this computer cannot compute faster; a smaller model can begin sooner",
    "attention": "the text is long, and all of it is looked at for each word; a shorter one begins sooner",
    "others": "other programs keep the processor busy",
    "stopped": "this container may not use more of the processor",
    "heat": "the processor is too hot to run at full speed; air around it, and mains power, help",
    "disk": "the model is larger than memory, and is read from disk; a smaller precision is faster",
    "paging": "memory is short; close other programs, or choose a smaller precision",
    "beside": "it was written beside other answers",
    "queue": "it waited for other answers",
    "restore": "the chat was read back from disk",
}


def summary(found: Diagnosis, facts: Facts) -> str:
    """One plain sentence about an answer: why it is slow, or that it is not; empty where that cannot be told."""
    why = plainly(found, facts)
    if why:
        return sentence(why)
    if found.slow or facts.n_steps < FEWEST_STEPS or not facts.stages.get("decode"):
        return ""
    return "It began soon and was written faster than one reads."


def _tokens(facts: Facts) -> str:
    return f"{facts.prompt_tokens - facts.cached_tokens:,} of {facts.prompt_tokens:,} tokens"


def _changed(facts: Facts) -> str:
    turn = facts.meanwhile.changed_turn
    return f"the template wrote turn {turn} in another way" if turn else "its beginning, or system prompt, changed"


def _bound(found: Diagnosis) -> str:
    """Bound of a phase in words: `decode-bound at 87 % of memory bandwidth`."""
    limit = found.pace.bound if found.pace else None
    what = {"memory": "memory bandwidth", "arithmetic": "arithmetic"}.get(limit or "")
    if not what or not found.share:
        return f"{found.stage}-bound"
    if found.share > 1:  # it was measured while other programs computed, or on larger data
        return f"{found.stage}-bound by {what}, faster than it was measured to be"
    return f"{found.stage}-bound at {percent(found.share)} of {what}"


def _new(found: Diagnosis, facts: Facts) -> DiagnosisWords:
    why = f"{_tokens(facts)} were never read before"
    return DiagnosisWords(_bound(found), why, "continuing the same chat reads only new tokens")


def _evicted(found: Diagnosis, facts: Facts) -> DiagnosisWords:
    smaller = "a q8 cache, or " if facts.kv_codec in ("f16", "f32") else ""
    why = f"{_tokens(facts)} were not cached, as others took their room"
    return DiagnosisWords(_bound(found), why, f"{smaller}fewer long chats in turn leave more of each")


def _changed_words(found: Diagnosis, facts: Facts) -> DiagnosisWords:
    why = f"{_tokens(facts)} were not cached because {_changed(facts)} at token {facts.meanwhile.changed_at:,}"
    return DiagnosisWords(_bound(found), why, "keep the beginning of a chat unchanged")


def _weights(found: Diagnosis, facts: Facts) -> DiagnosisWords:
    assert found.pace is not None
    cache = " or a q8 cache" if found.pace.extra > 0.2 and facts.kv_codec in ("f16", "f32") else ""
    threads = ", more threads do not" if (found.share or 0) >= SURE else ""
    why = f"{gib(found.pace.read_bytes)} a second are read, {percent(found.pace.extra)} of it cache"
    return DiagnosisWords(_bound(found), why, f"a smaller precision{cache} helps{_gain(found, facts)}{threads}")


def _gain(found: Diagnosis, facts: Facts) -> str:
    """How much faster a 4-bit precision writes where memory is the limit: the cache is read as before."""
    work, cache = facts.work, found.pace.extra if found.pace else 0.0
    n_weights = work.macs + work.wide_macs if work else 0
    if work is None or not n_weights:
        return ""
    times = 1 / (cache + (1 - cache) * _FEW_BITS / (8 * work.weight_bytes / n_weights))
    return f" (4 bits a weight: ≈{times:.1f} times as fast)" if times >= _WORTH else ""


def _cache(found: Diagnosis, facts: Facts) -> DiagnosisWords:
    assert found.pace is not None
    smaller = {"q8": "k8v4 for the cache", "k8v4": "q4 for the cache", "q4": ""}.get(facts.kv_codec, "a q8 cache")
    why = f"the cache of {facts.held_tokens:,} tokens is {percent(found.pace.extra)} of what a token reads"
    return DiagnosisWords(
        _bound(found), why, f"{smaller} or a shorter chat helps" if smaller else "a shorter chat helps"
    )


def _arithmetic(found: Diagnosis, facts: Facts) -> DiagnosisWords:
    return DiagnosisWords(_bound(found), "every weight is used for every token", "a smaller model helps")


def _attention(found: Diagnosis, facts: Facts) -> DiagnosisWords:
    assert found.pace is not None
    why = f"{percent(found.pace.extra)} of the arithmetic is attention to what came before"
    return DiagnosisWords(_bound(found), why, "a shorter text helps")


def _overhead(found: Diagnosis, facts: Facts) -> DiagnosisWords:
    why = f"{found.stage} kept neither memory nor arithmetic busy, which is common for small models"
    return DiagnosisWords("overhead-bound", why, "a larger one is hardly slower")


def _others(found: Diagnosis, facts: Facts) -> DiagnosisWords:
    share = percent(facts.meanwhile.others_share or 0)
    why = f"{found.stage} had to share, other programs used {share} of the processors"
    return DiagnosisWords("held up by other programs", why, "it is faster once they are closed")


def _stopped(found: Diagnosis, facts: Facts) -> DiagnosisWords:
    why = f"the container's limit kept the engine from running for {ms(facts.meanwhile.stopped_ms)}"
    return DiagnosisWords("held up by a limit", why, "give the container more CPU, or use fewer --threads")


def _heat(found: Diagnosis, facts: Facts) -> DiagnosisWords:
    why = f"the processor was slowed down for {ms(facts.meanwhile.hot_ms)} because it was too hot"
    return DiagnosisWords("held up by heat", why, "better cooling helps, or fewer --threads")


def _disk(found: Diagnosis, facts: Facts) -> DiagnosisWords:
    why = f"{gib(facts.weights_on_disk)} of the weights do not fit memory and are read as they are used"
    return DiagnosisWords("bound by the disk", why, "a smaller precision, or more memory, helps")


def _paging(found: Diagnosis, facts: Facts) -> DiagnosisWords:
    why = f"{facts.meanwhile.page_faults or 0:,} pages of the engine had to come back from disk"
    return DiagnosisWords("short of memory", why, "close other programs, or choose a smaller precision or context")


def _beside(found: Diagnosis, facts: Facts) -> DiagnosisWords:
    why = f"{facts.meanwhile.beside_tokens:,} tokens of other answers were computed in the same steps"
    return DiagnosisWords("shared with other answers", why, "alone it is faster")


def _queue(found: Diagnosis, facts: Facts) -> DiagnosisWords:
    n = facts.meanwhile.ahead
    who = "another answer was" if n == 1 else f"{n} other answers were"
    return DiagnosisWords(
        "held up by a queue", f"it waited {ms(found.milliseconds)}; {who} under way when it was asked for"
    )


def _waiting(found: Diagnosis, facts: Facts) -> DiagnosisWords:
    return DiagnosisWords("held up", f"it waited {ms(found.milliseconds)} before the engine began")


def _restore(found: Diagnosis, facts: Facts) -> DiagnosisWords:
    why = f"{facts.restored_tokens:,} tokens were read back from disk; to compute them again would have taken longer"
    return DiagnosisWords("bound by the disk", why, "chats used a short time ago are still in memory")


def _text(found: Diagnosis, facts: Facts) -> DiagnosisWords:
    return DiagnosisWords(
        "bound by text", f"preparing the prompt took {ms(found.milliseconds)}, more than the model itself"
    )


def _unknown(found: Diagnosis, facts: Facts) -> DiagnosisWords:
    but = "" if found.milliseconds >= max(facts.stages.values()) else ", but for a short wait"
    return DiagnosisWords(_bound(found), f"{found.stage} took longest{but}, {ms(found.milliseconds)}")


_WORDS: Mapping[Cause, Callable[[Diagnosis, Facts], DiagnosisWords]] = {
    "changed": _changed_words,
    "evicted": _evicted,
    "new": _new,
    "weights": _weights,
    "cache": _cache,
    "arithmetic": _arithmetic,
    "attention": _attention,
    "overhead": _overhead,
    "others": _others,
    "stopped": _stopped,
    "heat": _heat,
    "disk": _disk,
    "paging": _paging,
    "beside": _beside,
    "queue": _queue,
    "waiting": _waiting,
    "restore": _restore,
    "text": _text,
    "unknown": _unknown,
}
