"""How much of a Mac's memory its GPU may take.

The GPU computes in main memory. What it uses is wired: macOS never swaps it out, so everything else has to
give way, and a machine whose wired memory grows past what is left stalls or panics. Users of mlx-lm meet that, usually
after they raised `iogpu.wired_limit_mb`. So three limits hold, and the least counts:

- what macOS lets the GPU wire: `iogpu.wired_limit_mb`, or where that is 0 a part of the memory that its driver names
  (torch.mps.recommended_max_memory), about 2/3 on Macs of up to 36 GB and 3/4 above;
- what the system and other programs keep, whatever that limit was set to;
- what is free now, less what must stay free for macOS not to compress or swap.
"""

from __future__ import annotations

from localrun.base.machine import Memory

SMALL_MAC = 36 << 30
SYSTEM_SHARE, LEAST_FOR_SYSTEM = 8, 2 << 30  # an eighth of the memory, and never less than 2 GiB
STAYS_FREE = 512 << 20


def usual_limit(total: int) -> int:
    """Bytes that macOS lets a GPU wire unless somebody set another limit."""
    return total * 2 // 3 if total <= SMALL_MAC else total * 3 // 4


def gpu_memory(main: Memory, wired_limit: int, in_use: int) -> Memory:
    """Bytes that the GPU may take in all, and now.

    main: main memory; its total is the machine's. wired_limit: what macOS lets a GPU wire. in_use: what this process
    has of that already, which main memory does not count as free.
    """
    most = min(wired_limit, main.total - max(LEAST_FOR_SYSTEM, main.total // SYSTEM_SHARE))
    now = min(most - in_use, main.available - STAYS_FREE)
    return Memory(max(0, most), max(0, now))
