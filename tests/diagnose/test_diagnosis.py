"""Why an answer was slow: never more than the figures carry, held to the same rules written down again, one by one."""

import random
from dataclasses import asdict, replace
from typing import Any, get_args

import pytest

from localrun.base.events import Meanwhile, Work
from localrun.diagnose.diagnosis import Cause, Diagnosis, diagnose
from localrun.diagnose.facts import Facts, facts_of
from localrun.diagnose.pace import pace
from localrun.diagnose.predict.topics import PREDICTED
from localrun.diagnose.words import in_words, plainly, summary
from localrun.fit.rates import Rates

RATES = Rates(read_bytes=12.6e9, macs=2e11, wide_macs=5e10)
ONE_B = Work(weight_bytes=800_000_000, macs=1_240_000_000, wide_macs=0, attention_macs=65_536)
Q8 = replace(ONE_B, weight_bytes=1_300_000_000)
TINY = Work(weight_bytes=6_500_000, macs=6_000_000, wide_macs=0, attention_macs=4096)
CROWD = Meanwhile(others_share=0.48, idle_share=0.02)


def facts(decode: float = 0.0, prefill: float = 0.0, **changes: Any) -> Facts:
    """Of a model of a billion weights; times in milliseconds."""
    stages = {"template": 0.0, "tokenise": 0.0, "wait": 0.0, "restore": 0.0, "prefill": prefill, "decode": decode}
    stages |= changes.pop("stages", {})
    plain = Facts(stages=stages, completion_tokens=65, kv_codec="f16", work=ONE_B, rates=RATES)  # type: ignore[arg-type]
    return replace(plain, **changes)


PROMPT = {"prefill": 40_000.0, "prompt_tokens": 2644, "cached_tokens": 0, "computed_tokens": 2644}


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (
            facts(**{**PROMPT, "cached_tokens": 12, "computed_tokens": 2632}, meanwhile=Meanwhile(12, 0)),
            "2,632 of 2,644 tokens were not cached because its beginning, or system prompt, changed at token 12",
        ),
        (facts(**PROMPT, meanwhile=Meanwhile(12, 0)), "of arithmetic: 2,644 of 2,644 tokens were not cached because"),
        (facts(**PROMPT, meanwhile=Meanwhile(700, 2)), "because the template wrote turn 2 in another way at token 700"),
        (facts(**PROMPT, meanwhile=Meanwhile(evicted=True)), "not cached, as others took their room; a q8 cache, or"),
        (facts(**PROMPT), "prefill-bound at 52 % of arithmetic: 2,644 of 2,644 tokens were never read before"),
        (facts(**PROMPT, work=None), "prefill-bound: 2,644 of 2,644 tokens were never read before"),
        (
            facts(6000),
            "of memory bandwidth: 7.95 GiB a second are read, 0 % of it cache; a smaller",
        ),
        (facts(6000), "a smaller precision helps, more threads do not"),
        (facts(9750, work=Q8), "a smaller precision helps (4 bits a weight: ≈1.9 times as fast), more threads do not"),
        (facts(12_000, work=Q8, kv_bytes=400_000_000), " or a q8 cache helps (4 bits a weight: ≈1.5 times as fast)"),
        (facts(9000), "a smaller precision helps"),
        (facts(9000, kv_bytes=300_000_000), "a smaller precision or a q8 cache helps, more threads do not"),
        (
            facts(20_000, kv_bytes=2_000_000_000, held_tokens=30_000),
            "decode-bound at 71 % of memory bandwidth: the cache of 30,000 tokens is 71 % of what a token reads; a q8",
        ),
        (facts(2000, work=TINY), "overhead-bound: decode kept neither memory nor arithmetic busy"),
        (facts(60_000, meanwhile=CROWD), "held up by other programs: decode had to share, other programs used 48 %"),
        (facts(3000), "decode-bound by memory bandwidth, faster than it was measured to be: "),
        (facts(6000, meanwhile=CROWD), "decode-bound at 68 % of memory bandwidth"),  # at its limit all the same
        (facts(60_000, meanwhile=Meanwhile(stopped_ms=31_000)), "kept the engine from running for 31.0 s"),
        (
            facts(60_000, meanwhile=Meanwhile(hot_ms=20_000)),
            "held up by heat: the processor was slowed down for 20.0 s",
        ),
        (facts(6000, meanwhile=Meanwhile(hot_ms=6000)), "decode-bound at 68 % of memory bandwidth"),
        (facts(60_000, meanwhile=Meanwhile(page_faults=200_000)), "short of memory: 200,000 pages of the engine"),
        (
            facts(60_000, meanwhile=Meanwhile(page_faults=200_000), weights_on_disk=12 << 30),
            "bound by the disk: 12.0 GiB of the weights do not fit memory",
        ),
        (
            facts(60_000, meanwhile=Meanwhile(beside_tokens=512)),
            "512 tokens of other answers were computed in the same",
        ),
        (
            facts(stages={"wait": 12_000.0}, meanwhile=Meanwhile(ahead=2)),
            "it waited 12.0 s; 2 other answers were under",
        ),
        (facts(stages={"wait": 12_000.0}), "held up: it waited 12.0 s before the engine began"),
        (facts(stages={"restore": 9000.0}, restored_tokens=256), "256 tokens were read back from disk"),
        (facts(stages={"tokenise": 9000.0}), "bound by text: preparing the prompt took 9.0 s"),
        (facts(6000, work=None), "decode-bound: decode took longest, 6.0 s"),
        (
            facts(24, work=None, stages={"wait": 31.0}),
            "decode-bound: decode took longest, but for a short wait, 24.0 ms",
        ),
    ],
)
def test_the_line_of_an_answer(found: Facts, line: str) -> None:
    diagnosis = diagnose(found)
    assert diagnosis is not None
    assert line in in_words(diagnosis, found).line


def test_every_cause_has_a_page_of_explain() -> None:
    topics = {cause: Diagnosis("decode", 1.0, cause).topic for cause in get_args(Cause)}
    assert set(topics.values()) <= set(PREDICTED)
    assert (topics["weights"], topics["evicted"], topics["unknown"]) == ("precision", "reuse", "phases")


def test_no_diagnosis_without_times_or_limits() -> None:
    assert diagnose(Facts()) is None
    assert diagnose(facts()) is None
    assert facts_of({"backend": "remote", "decode_ms": 9e9}, RATES) is None


def test_a_slow_stage_comes_before_one_that_only_took_longer() -> None:
    """A long answer that is fast is not what was slow about a prompt of nine seconds."""
    found = diagnose(facts(decode=6000, prefill=5000, computed_tokens=300, prompt_tokens=300))
    assert found is not None
    assert (found.stage, found.slow) == ("prefill", True)
    found = diagnose(facts(decode=6000))
    assert found is not None
    assert (found.stage, found.slow, plainly(found, facts(decode=6000))) == ("decode", False, "")


def test_figures_that_were_kept_as_plain_data_say_the_same() -> None:
    stats: dict[str, Any] = {
        "backend": "cpu", "ttft_ms": 3000.0, "prefill_ms": 1000.0, "restore_ms": 500.0, "decode_ms": 700.0,
        "completion_tokens": 9, "prompt_tokens": 70, "computed_tokens": 70, "kv_codec": "q8", "work": ONE_B,
        "meanwhile": Meanwhile(changed_at=3, ahead=1),
    }  # fmt: skip
    live = facts_of(stats, RATES)
    kept = facts_of({**stats, "work": asdict(ONE_B), "meanwhile": asdict(Meanwhile(changed_at=3, ahead=1))}, RATES)
    assert live == kept
    assert live is not None
    assert live.stages["wait"] == 1500.0
    old = facts_of({**stats, "meanwhile": {"ahead": "x"}, "work": {}}, RATES)
    assert old is not None
    assert (old.meanwhile, old.work) == (Meanwhile(), None)


def anything(choice: random.Random) -> Facts:
    def some(*values: Any) -> Any:
        return choice.choice(values)

    prompt = some(0, 5, 300, 2600, 25_000)
    cached = min(prompt, some(0, 12, 64, 2500, 24_000))
    around = Meanwhile(
        some(None, 0, 12, 64, 2000), some(0, 1), some(True, False), some(0, 1, 3), some(0, 20, 5000),
        some(None, 0.0, 0.3, 0.9), some(None, 0.0, 0.2, 0.9), some(None, 0, 10, 500_000), some(0.0, 50.0, 9e4),
        some(0.0, 50.0, 9e4),
    )  # fmt: skip
    names = ("template", "tokenise", "wait", "restore", "prefill", "decode")
    return Facts(
        {name: some(0.0, 0.0, 0.0, 0.0, 50.0, 900.0, 2500.0, 20_000.0, 60_000.0) for name in names},  # type: ignore[misc]
        prompt, cached, some(0, prompt - cached), some(0, 64), some(0, 1, 2, 65, 900), some(0, 3000), some(0, 1 << 30),
        some("", "f16", "q8", "k8v4", "q4"), some(0, 1 << 33), some("", "why"), some(None, ONE_B, ONE_B, TINY),
        some(None, RATES, RATES), around,
    )  # fmt: skip


def test_no_cause_is_named_that_the_figures_do_not_carry() -> None:
    choice, causes = random.Random(5), set()
    for _ in range(20_000):
        f = anything(choice)
        found = diagnose(f)
        if found is None:
            assert not any(took for stage, took in f.stages.items() if stage != "wait" or took >= 250)
            continue
        m, took = f.meanwhile, found.milliseconds
        assert took == f.stages[found.stage] > 0
        assert found.stage != "wait" or took >= 250
        missing = f.prompt_tokens - f.cached_tokens
        bound, extra = (found.pace.bound, found.pace.extra) if found.pace else (None, 0.0)
        busy = bound in ("memory", "arithmetic")
        in_phase = found.stage in ("prefill", "decode")
        again = found.stage == "prefill" and 2 * missing >= f.prompt_tokens > 0
        carried = {
            "changed": again and m.changed_at is not None and f.cached_tokens <= m.changed_at < f.prompt_tokens / 2,
            "evicted": again and m.evicted,
            "new": again and not m.evicted,
            "weights": bound == "memory" and extra <= 0.5,
            "cache": bound == "memory" and extra > 0.5,
            "arithmetic": bound == "arithmetic" and extra <= 0.5,
            "attention": bound == "arithmetic" and extra > 0.5,
            "overhead": bound == "overhead",
            "others": in_phase and not busy and (m.others_share or 0) >= 0.25 and m.idle_share in (0.0, 0.2),
            "stopped": in_phase and not busy and m.stopped_ms >= took / 4,
            "heat": in_phase and not busy and m.hot_ms >= took / 4,
            "disk": in_phase and not busy and f.weights_on_disk > 0 and (m.page_faults or 0) * 0.1 >= took / 4,
            "paging": in_phase and not busy and not f.weights_on_disk and (m.page_faults or 0) * 0.1 >= took / 4,
            "beside": in_phase and not busy and m.beside_tokens > 0,
            "queue": found.stage == "wait" and m.ahead > 0,
            "waiting": found.stage == "wait" and m.ahead == 0,
            "restore": found.stage == "restore",
            "text": found.stage in ("template", "tokenise"),
            "unknown": in_phase and bound is None,
        }
        assert carried[found.cause], (found, f)
        before = sum(time for stage, time in f.stages.items() if stage != "decode")
        a_token = f.stages["decode"] / (f.completion_tokens - 1) if f.completion_tokens > 1 else 0.0
        assert found.slow == (a_token > 125 if found.stage == "decode" else before > 2000)
        assert found.slow or (a_token <= 125 and before <= 2000), "a slow stage is told before one that is not"
        if f.rates is None or f.work is None:
            assert found.share is None
        line, plain = in_words(found, f).line, plainly(found, f)
        assert "\n" not in line
        assert "None" not in line + plain
        assert not plain or found.slow
        causes.add(found.cause)
    assert causes == carried.keys()


def test_the_share_is_that_of_the_pace() -> None:
    found = diagnose(facts(6000))
    expected = pace("decode", ONE_B, 64, 6.0, RATES)
    assert found is not None
    assert found.pace == expected


def test_one_sentence_says_why_an_answer_is_slow_or_that_it_is_not() -> None:
    slow, fast = facts(60_000, meanwhile=CROWD), facts(6000)
    told = [summary(found, one) for one in (slow, fast) if (found := diagnose(one))]
    assert told == [
        "Slow: other programs keep the processor busy.",
        "It began soon and was written faster than one reads.",
    ]
