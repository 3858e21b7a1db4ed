"""Whether two versions of localrun answer alike: a hash of all ids for each architecture, KV codec and window.

    python -m benchmarks.same_ids --folder /tmp/tiny --make
    python -m benchmarks.same_ids --folder /tmp/tiny > new.txt
    python -m benchmarks.same_ids --folder /tmp/tiny --source OTHER/CHECKOUT > old.txt; diff old.txt new.txt

`--make` writes the tiny random models of the tests. Answers are drawn at temperature 1 with fixed seeds, which a small
difference of logits changes sooner than greedy ones. Prompts share beginnings, so that the prefix tree takes part.
"""

import argparse
import hashlib
import random
import sys
from pathlib import Path
from typing import Any

from benchmarks import ROOT

N_TOKENS = 4  # of an answer


def make(folder: Path) -> None:
    """A checkpoint of every recipe of the tests."""
    from localrun_testing.tiny_models import TINY_MODELS, save

    for name in TINY_MODELS:
        save(name, folder / name, hub_config=True)


def prompts(count: int) -> list[str]:
    chance = random.Random(0)
    known = [""]
    for _ in range(count):
        known.append(chance.choice(known[-4:])[:120] + "".join(chance.choices("the cat sat on a mat ", k=60)))
    return known[1:]


def answers(path: Path, codec: str, window: int | None, count: int, backend: str) -> str:
    """The hash of the ids of all answers, or why there are none."""
    from localrun.base.errors import LocalrunError
    from localrun.base.events import Done
    from localrun.base.request import LoadOptions, Request, Sampling
    from localrun.client.local import LocalClient

    hashed = hashlib.sha256()
    options: Any = {"backend": backend, "kv": codec, "ctx": 256, "window": window}
    try:
        with LocalClient(LoadOptions(path, **options)) as client:
            generate: Any = getattr(client, "generate", None) or client.stream  # type: ignore[attr-defined]
            for seed, prompt in enumerate(prompts(count)):
                sampling = Sampling(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, seed=seed)
                request = Request(prompt=prompt, sampling=sampling, max_tokens=N_TOKENS)
                done = next(event for event in generate(request) if isinstance(event, Done))
                hashed.update(repr(tuple(done.completion.token_ids)).encode())
    except LocalrunError as error:
        return f"none: {error.message}".replace(str(path), path.name)
    return hashed.hexdigest()[:16]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--source", type=Path, default=ROOT, help="the checkout to import localrun from")
    parser.add_argument("--prompts", type=int, default=200)
    parser.add_argument("--backend", default="reference")
    parser.add_argument("--codecs", nargs="+", default=["f32", "f16", "q8", "k8v4", "q4"])
    parser.add_argument("--windows", nargs="+", type=int, default=[0, 64], help="0: none")
    options = parser.parse_args()
    if options.make:
        return make(options.folder)
    sys.meta_path[:] = [finder for finder in sys.meta_path if not type(finder).__module__.startswith("_editable")]
    sys.path.insert(0, str(options.source))
    for path in sorted(options.folder.iterdir()):
        for codec in options.codecs:
            for window in options.windows:
                found = answers(path, codec, window or None, options.prompts, options.backend)
                print(path.name, codec, window, found, flush=True)
    return None


if __name__ == "__main__":
    main()
