import pytest

from localrun.base.nearest import did_you_mean, nearest

NAMES = ("temperature", "top_k", "top_p", "max_tokens", "stop", "Threads")


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("temp", ["temperature"]),
        ("TEMP", ["temperature"]),
        ("top", ["top_k", "top_p"]),
        ("tokens", ["max_tokens"]),
        ("tempreature", ["temperature"]),
        ("thread", ["Threads"]),
        ("colour", []),
        ("", []),
    ],
)
def test_nearest_names(typed: str, found: list[str]) -> None:
    assert nearest(typed, NAMES) == found


def test_did_you_mean_names_the_nearest_word() -> None:
    assert did_you_mean("top", NAMES) == "did you mean top_k or top_p?"
    assert did_you_mean("colour", NAMES) == ""
