"""Requests are looked at before they run: every figure that means nothing is named, with what is needed instead."""

import math
from typing import Any

import pytest

from localrun.base.check import check_request
from localrun.base.errors import UsageError
from localrun.base.request import Request, Sampling

HI = {"role": "user", "content": "hi"}


def test_valid_requests_pass() -> None:
    check_request(Request())
    sampling = Sampling(0, 0, 1, 0, 1.1, -2.0, 2, {0: -100, 5: 1.5}, seed=2**64 - 1)
    check_request(Request((HI,), sampling=sampling, max_tokens=1, stop=("x",), think="off", overflow="roll"))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("temperature", value) for value in (math.nan, math.inf, -3, 101, "hot", "0.5", True, b"1", [1])),
        *(("top_k", value) for value in (-1, 1.5, math.nan, "40", True)),
        *(("top_p", value) for value in (7, -0.1, math.nan, "x")),
        *(("min_p", value) for value in (1.5, math.nan)),
        *(("repeat_penalty", value) for value in (0, -1, math.nan, math.inf)),
        *(("presence_penalty", value) for value in (math.nan, math.inf, 1e9)),
        *(("frequency_penalty", value) for value in (math.nan, -math.inf)),
        *(("seed", value) for value in (-1, 2**64, 1.0, "1")),
        *(
            ("logit_bias", value)
            for value in ({-1: 1}, {2**31: 1.0}, {1: math.nan}, {1: "x"}, {"1": 1}, [1], {True: 1})
        ),
    ],
)
def test_sampling_that_means_nothing_is_named(field: str, value: Any) -> None:
    with pytest.raises(UsageError, match=field) as caught:
        check_request(Request((HI,), sampling=Sampling(**{field: value})))
    assert "needed" in caught.value.hint


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("max_tokens", value) for value in (0, -1, 2.5, "many", math.nan)),
        *(("prompt", value) for value in (b"hi", 5)),
        *(("stop", value) for value in (("",), (5,))),
        *(("think", value) for value in ("maybe", True, None)),
        *(("overflow", value) for value in ("burst", 1)),
        *(("messages", value) for value in (("hi",), ({"content": "hi"},), ({"role": 5},), (None,))),
    ],
)
def test_requests_that_mean_nothing_are_named(field: str, value: Any) -> None:
    with pytest.raises(UsageError, match="message" if field == "messages" else field) as caught:
        check_request(Request(**{field: value}))
    assert "needed" in caught.value.hint
