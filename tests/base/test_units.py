import pytest

from localrun.base.units import count, gib, ms, tps


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (gib(0), "0 bytes"),
        (gib(1), "1 byte"),
        (gib(86), "86 bytes"),
        (gib(812), "0.79 KiB"),
        (gib(5 << 20), "5.00 MiB"),
        (gib(200 << 20), "0.20 GiB"),
        (gib(4.37 * 2**30), "4.37 GiB"),
        (gib(200 << 30), "200 GiB"),
        (gib(5 << 20, 4 << 30), "<0.01 GiB"),
        (gib(90 << 20, 4 << 30), "0.09 GiB"),
        (gib(0, 4 << 30), "0 GiB"),
        (gib(100 << 20, 200 << 20), "100 MiB"),
        (gib(200 << 20, 200 << 20), "200 MiB"),
        (gib(7 << 20, 200 << 20), "7.00 MiB"),
        (ms(0.4217), "0.42 ms"),
        (ms(87.4), "87.4 ms"),
        (ms(999.4), "999 ms"),
        (ms(3400), "3.4 s"),
        (ms(125_000), "2 min 05 s"),
        (ms(3_599_000), "59 min 59 s"),
        (ms(3_599_600), "1 h 00 min"),
        (ms(13_564_000), "3 h 46 min"),
        (tps(41.27), "41.3 tok/s"),
        (tps(4127), "4127 tok/s"),
        (count(8_030_000_000), "8.03 B"),
        (count(12_400_000), "12.4 M"),
        (count(999_885_952), "1.00 B"),
        (count(999_400_000), "999 M"),
        (count(512), "512"),
    ],
)
def test_numbers_as_people_read_them(shown: str, expected: str) -> None:
    assert shown == expected
