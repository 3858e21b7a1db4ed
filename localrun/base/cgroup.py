"""Limits that a container or a service manager sets: control groups, version 2 and 1. Torch-free."""

from collections.abc import Iterator
from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")


def memory_left() -> tuple[int, int] | None:
    """(limit, what is left of it) in bytes of the tightest group this process is in; None where nothing is limited.

    File pages count as left: the kernel drops them before it kills anything. Above `memory.high` it kills nothing, but
    slows everything down.
    """
    found: list[tuple[int, int]] = []
    for folder in _folders("memory"):
        limits = [_number(folder / name) for name in ("memory.max", "memory.high", "memory.limit_in_bytes")]
        limit = min((limit for limit in limits if limit is not None), default=1 << 60)
        used = _number(folder / "memory.current") or _number(folder / "memory.usage_in_bytes")
        if used is not None and limit < 1 << 60:  # version 1 says "no limit" with a huge number
            found.append((limit, max(0, limit - used + _file_pages(folder))))
    return min(found, key=lambda pair: pair[1], default=None)


def cpu_quota() -> float | None:
    """Processors that the tightest group may keep busy; None where nothing is limited."""
    shares = []
    for folder in _folders("cpu"):
        quota, _, period = _text(folder / "cpu.max").partition(" ")
        if not quota:
            quota, period = _text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us")
        if quota.isdigit() and period.isdigit() and int(period):
            shares.append(int(quota) / int(period))
    return min(shares, default=None)


def stopped_seconds() -> float:
    """How long limits of the processor have kept this process's own group from running, so far; 0 where none do."""
    for folder in _folders("cpu"):
        figures = dict(line.split(" ", 1) for line in _text(folder / "cpu.stat").splitlines() if " " in line)
        for name, a_second in (("throttled_usec", 1e6), ("throttled_time", 1e9)):
            if figures.get(name, "").isdigit():
                return int(figures[name]) / a_second
    return 0.0


def _folders(controller: str) -> Iterator[Path]:
    """The group of this process and those around it, in either version's tree."""
    for line in _text(OWN).splitlines():
        _, _, rest = line.partition(":")
        names, _, group = rest.partition(":")
        if names and controller not in names.split(","):
            continue
        root = MOUNT / controller if names else MOUNT
        inside = root / group.lstrip("/")
        within = inside if inside.is_dir() else root  # a container sees its own group as the root
        yield from [within, *(parent for parent in within.parents if parent.is_relative_to(root))]


def _file_pages(folder: Path) -> int:
    stat = dict(line.split(" ", 1) for line in _text(folder / "memory.stat").splitlines() if " " in line)
    counts = (stat.get(f"total_{key}") or stat.get(key) or "" for key in ("inactive_file", "active_file"))
    return sum(int(count) for count in counts if count.isdigit())


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text.isdigit() else None


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
