"""An answer that only repeats itself, from the command line: a line of --jsonl, a note to a person, a reason to stop.

One token is made so likely that the built-in model says nothing else.
"""

import pytest
from localrun_testing.cli import Terminal, localrun
from localrun_testing.schemas import check

from localrun.engine.loops import CHECK_TOKENS, MIN_TOKENS

N_TOKENS = MIN_TOKENS + 2 * CHECK_TOKENS
LOOPING = ("run", "--no-stdin", "--raw", "Once", "--logit-bias", "300:1000000", "--max-tokens", str(N_TOKENS))


@pytest.mark.parametrize("stop", [True, False])
def test_jsonl_has_a_line_of_it(stop: bool) -> None:
    ran = localrun(*LOOPING, "--jsonl", *(["--stop-on-loop"] if stop else []))
    assert ran.code == 0, ran.err
    for event in ran.lines:
        check(event, f"jsonl: {event['type']}")
    kinds = [event["type"] for event in ran.lines]
    assert kinds.count("loop") == 1
    at, done = kinds.index("loop"), ran.lines[-1]
    assert ran.lines[at] == {"type": "loop", "period": 1}
    assert kinds[:at].count("token") >= MIN_TOKENS
    assert done["loop_period"] == 1
    if stop:
        assert done["stop_reason"] == "loop"
        assert all(event.get("id") is None for event in ran.lines[at:]), "no more than text that was held back"
        assert MIN_TOKENS <= done["completion_tokens"] <= MIN_TOKENS + CHECK_TOKENS
    else:
        assert done["stop_reason"] == "length"
        assert done["completion_tokens"] == N_TOKENS
    assert "repeats itself" not in ran.err


def test_a_loop_is_reported_and_ends_the_answer() -> None:
    with Terminal(*LOOPING, "--stats", ends="stdin stdout") as terminal:
        ran = terminal.finish()
    assert ran.code == 0, ran.err
    assert ran.err.count("the answer repeats itself: the same token over and over.") == 1
    assert "repeat penalty" in ran.err
    n_tokens = int(ran.err.partition("answer  ")[2].split()[0])
    assert MIN_TOKENS <= n_tokens <= MIN_TOKENS + CHECK_TOKENS


def test_a_pipe_gets_all_of_it_and_the_note_goes_to_stderr() -> None:
    ran = localrun(*LOOPING)
    assert ran.code == 0
    assert ran.err.count("the answer repeats itself") == 1
    assert "repeats itself" not in ran.out
