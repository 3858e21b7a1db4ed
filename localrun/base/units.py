"""Numbers as people read them. Inside the program sizes are bytes and times are seconds or milliseconds."""


def gib(n_bytes: float, largest: float = 0) -> str:
    """Bytes as GiB, or MiB, KiB and bytes where GiB would read 0.0: `4.37 GiB`, `12.5 MiB`, `86 bytes`.

    In a column each has the unit that the `largest` has one of: `0.01 GiB`, or `<0.01 GiB` instead of nothing.
    """
    units, share = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)), 1 if largest else 0.1
    found = next((one for one in units if abs(n_bytes) >= one[1] * share or largest >= one[1]), None)
    if found is None:
        return f"{n_bytes:.0f} byte{'' if round(n_bytes) == 1 else 's'}"
    unit, size = found
    value = n_bytes / size
    if not value:
        return f"0 {unit}"
    if largest and 0 < value < 0.005:
        return f"<0.01 {unit}"
    return f"{value:.{_decimals(value)}f} {unit}"


def ms(milliseconds: float) -> str:
    """A duration: `0.42 ms`, `87 ms`, `3.4 s`, `2 min 05 s`, `3 h 46 min`."""
    if milliseconds >= 3_599_500:  # what would be rounded to 60 min
        hours, minutes = divmod(round(milliseconds / 60_000), 60)
        return f"{hours} h {minutes:02d} min"
    if milliseconds >= 60_000:
        minutes, seconds = divmod(round(milliseconds / 1000), 60)
        return f"{minutes} min {seconds:02d} s"
    if milliseconds >= 1000:
        return f"{milliseconds / 1000:.1f} s"
    return f"{milliseconds:.{_decimals(milliseconds)}f} ms"


def tps(rate: float) -> str:
    """A rate in tokens per second: `41.3 tok/s`, `0.25 tok/s`."""
    return f"{rate:.{min(_decimals(rate), 1 if rate >= 1 else 2)}f} tok/s"


def percent(share: float, decimals: int = 0) -> str:
    """A share of a whole: `87 %`."""
    return f"{100 * share:.{decimals}f} %"


def count(n: int) -> str:
    """A count of parameters: `8.03 B`, `4.2 M`, `512`."""
    for unit, size in (("T", 10**12), ("B", 10**9), ("M", 10**6), ("K", 10**3)):
        if n >= size * 0.9995:  # what would be rounded to 1000 of the next smaller
            return f"{n / size:.{_decimals(n / size)}f} {unit}"
    return str(n)


def _decimals(value: float) -> int:
    """Three significant digits are as many as anyone reads."""
    size = abs(value)
    return 0 if size >= 100 else 1 if size >= 10 else 2
