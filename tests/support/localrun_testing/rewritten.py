"""Asserts that pytest rewrites. It keeps what it makes of a file, but where files are new, as in a fresh checkout, each
worker would rewrite all of them at the same time: here each first makes a part, which the others find."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from _pytest.assertion import rewrite  # which has no public name for this


def rewrite_a_part(config: pytest.Config) -> None:
    """Rewrite what falls to this worker of the tests that are asked for; in a run without workers, nothing."""
    workers: dict[str, str] = getattr(config, "workerinput", {})
    if not workers:
        return
    number, n_workers = int(workers["workerid"].removeprefix("gw")), int(workers["workercount"])
    for file in sorted(_asked_for(config))[number::n_workers]:
        kept = rewrite.get_cache_dir(file) / f"{file.stem}{rewrite.PYC_TAIL}"
        if kept.exists() and kept.stat().st_mtime >= file.stat().st_mtime:
            continue
        with suppress(SyntaxError, OSError):  # pytest itself tells of the one, and lives with the other
            kept.parent.mkdir(parents=True, exist_ok=True)
            digest, code = rewrite._rewrite_test(file, config)
            rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, digest, kept)


def _asked_for(config: pytest.Config) -> Iterator[Path]:
    for argument in config.args:
        path = config.invocation_params.dir / argument.partition("::")[0]
        yield from path.rglob("test_*.py") if path.is_dir() else filter(Path.is_file, [path])
