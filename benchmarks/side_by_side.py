"""Engines side by side: each a process of its own, all cases on all engines in turn, round after round."""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from localrun.backends.limits import LimitProbe, Limits

WORKER = Path(__file__).with_name("engine_worker.py")
REST = 0.3  # seconds between two engines: threads wait busily for a while, those of OpenMP for 0.2 s


@dataclass(frozen=True)
class Case:
    kind: str
    n: int
    depth: int
    batch: int

    @property
    def title(self) -> str:
        more = f", depth {self.depth}" * bool(self.depth) + f", batch {self.batch}" * (self.batch > 1)
        return f"{self.kind} {self.n}{more}"


@dataclass
class Measured:
    """Tokens a second of one case by engine, one a round; with them what the machine could do at best."""

    rates: dict[str, list[float]] = field(default_factory=dict)
    bounds: list[float] = field(default_factory=list)  # tokens a second if only reading or only multiplying took time
    limits: list[Limits] = field(default_factory=list)

    def fastest(self, names: Collection[str]) -> str:
        """The engine of these with the highest median."""
        return max(names, key=lambda name: statistics.median(self.rates[name]))

    def ratios(self, peer: str) -> list[float]:
        """Ours divided by the peer's, round by round."""
        return [ours / theirs for ours, theirs in zip(self.rates["localrun"], self.rates[peer], strict=True)]

    @property
    def share_of_limit(self) -> float:
        return statistics.median(rate / most for rate, most in zip(self.rates["localrun"], self.bounds, strict=True))


class Engine:
    """A worker process, started for one model."""

    def __init__(
        self,
        kind: str,
        python: str | Path = sys.executable,
        environment: Mapping[str, str] | None = None,
        worker: Path = WORKER,
        **model: Any,
    ) -> None:
        command = [str(python), str(worker), kind]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | (environment or {})
        )
        self.opened = self.ask(open=model)

    def ask(self, **request: Any) -> dict[str, float]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.process.args} ended with code {self.process.wait()}")
        answer: dict[str, float] = json.loads(line)
        return answer

    def rate(self, case: Case) -> float:
        time.sleep(REST)
        return case.n * case.batch / self.ask(measure=asdict(case))["seconds"]

    def bound(self, case: Case, limits: Limits) -> float:
        return self.ask(limit=asdict(case) | asdict(limits))["rate"]

    def close(self) -> None:
        self.process.stdin.close()  # type: ignore[union-attr]
        self.process.wait()


def measure(
    engines: Mapping[str, Engine], cases: Sequence[Case], rounds: int, probe: LimitProbe
) -> dict[Case, Measured]:
    """One of the engines is "localrun". Every other round goes through them backwards; a short one warms up."""
    results = {case: Measured() for case in cases}
    for number in range(rounds + 1):
        for case, measured in results.items():
            asked = case if number else replace(case, n=max(1, case.n // 8))
            order = list(engines) if number % 2 else list(reversed(engines))
            rates = {name: engines[name].rate(asked) for name in order}
            limits = probe.measure()
            if number:
                measured.limits.append(limits)
                measured.bounds.append(engines["localrun"].bound(case, limits))
                for name, rate in rates.items():
                    measured.rates.setdefault(name, []).append(rate)
    return results
