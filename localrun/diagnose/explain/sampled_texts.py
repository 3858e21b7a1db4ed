"""Texts sampled from the model itself, whose expected likelihood is known.

The mean of -ln p over such a text is the model's own entropy, and for other weights that plus their KL divergence. A
text from elsewhere may be so strange to a small model that rounding errors seem to improve it.
"""

from collections.abc import Sequence

import numpy as np

from localrun.base.request import Request
from localrun.diagnose.perplexity import log_softmax
from localrun.engine.load import LoadedModel
from localrun.engine.scratch_runs import ScratchRuns

ASKED = (
    "Tell me a story about a fox and a bird.",
    "What is a KV cache?",
    "Why is the first token slow?",
    "Hello! My name is Anna. How are you?",
    "What is quantisation good for?",
    "Tell me a story about a rabbit and the moon.",
)
LONGEST = 64  # tokens of one text


def sampled_texts(model: LoadedModel) -> list[tuple[list[int], int]]:
    """Token ids of a question and its answer, and where the answer begins."""
    rng = np.random.default_rng(1)
    return [_text(model, question, rng) for question in ASKED]


def _text(model: LoadedModel, question: str, rng: np.random.Generator) -> tuple[list[int], int]:
    prompt = model.text.prepare(Request(messages=({"role": "user", "content": question},))).ids[: model.plan.ctx // 2]
    ids = list(prompt)
    with ScratchRuns(model.engine.runner, model.engine.store) as run:
        new: Sequence[int] = prompt
        while len(ids) < len(prompt) + min(LONGEST, model.plan.ctx // 2):
            logits = run.feed(new, len(ids) - len(new), [len(new) - 1])
            chances = np.exp(log_softmax(logits.row(0)))
            ids.append(int(rng.choice(len(chances), p=chances / chances.sum())))
            new = ids[-1:]
            if ids[-1] in model.text.tokenizer.eog_ids:
                break
    return ids, len(prompt)
