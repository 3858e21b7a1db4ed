"""What precision of the weights and of the KV cache costs the built-in model, over chats it was never trained on.

    python -m tools.builtin_perplexity /tmp/builtin     (the folder of a training: it holds the file in all precisions)

Perplexity counts the tokens that the model itself says, each given all before it.
"""

from __future__ import annotations

import argparse
import math
from itertools import islice
from pathlib import Path

from localrun.base.request import KVCodecName, LoadOptions
from localrun.diagnose.perplexity import Score
from localrun.engine.load import LoadedModel, load
from localrun.engine.scratch_runs import ScratchRuns
from tools.builtin_data.compose import chats
from tools.builtin_tokenizer import encode_chat, load_tokenizer
from tools.train_builtin import PRECISIONS

CODECS: tuple[KVCodecName, ...] = ("f16", "q8", "k8v4", "q4")
STEP = 512
SEED = 1977  # trainings start from small seeds


def score(model: LoadedModel, texts: list[tuple[list[int], list[float]]]) -> Score:
    found = Score()
    for ids, weights in texts:
        said = [position for position, weight in enumerate(weights) if weight]
        with ScratchRuns(model.engine.runner, model.engine.store) as run:
            for start in range(0, len(ids), STEP):
                stop = min(start + STEP, len(ids))
                rows = [position for position in said if start < position <= stop]
                logits = run.feed(ids[start:stop], start, [position - 1 - start for position in rows])
                found.add([ids[position] for position in rows], logits)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--chats", type=int, default=300)
    args = parser.parse_args()
    tokenizer = load_tokenizer(args.work / "tokenizer.json")
    texts = [encode_chat(tokenizer, chat) for chat in islice(chats(SEED), args.chats)]
    print(f"| weights | MB | {' | '.join(f'{codec} cache' for codec in CODECS)} |\n|---|---|{'---|' * len(CODECS)}")
    for precision in PRECISIONS:
        path = args.work / f"localrun-tiny-{precision}.gguf"
        cells = [f"{path.stat().st_size / 1e6:.1f}"]
        for codec in CODECS:
            model = load(LoadOptions(path, kv=codec, backend="cpu"))
            try:
                cells.append(f"{math.exp(score(model, texts).nll):.3f}")
            finally:
                model.engine.close()
        print(f"| {precision} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
