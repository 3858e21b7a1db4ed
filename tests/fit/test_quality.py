"""Quality of precisions: it is in the order of their bits, and nothing is told of what was not measured."""

import pytest

from localrun.fit.precisions import bits_of
from localrun.fit.quality import kld_text, weight_kld


@pytest.mark.parametrize(
    "family", [("Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q4_K_S", "Q3_K_M", "Q3_K_S", "Q2_K"), ("int8", "int4")]
)
def test_fewer_bits_of_a_kind_stray_further(family: tuple[str, ...]) -> None:
    nats = [weight_kld(name) for name in family]
    assert None not in nats
    assert nats == sorted(nats, key=lambda value: value or 0.0)
    assert [bits_of(name) for name in family] == sorted((bits_of(name) for name in family), reverse=True)


def test_full_weights_stray_nowhere_and_of_others_nothing_is_claimed() -> None:
    assert weight_kld("bf16") == 0.0
    assert weight_kld("IQ1_S") is None
    assert weight_kld("UD-Q4_K_XL") is None
    assert [kld_text(nats) for nats in (None, 0.0, 0.00152, 0.1501)] == ["not measured", "0.00", "0.0015", "0.15"]
