"""What a saved chat saves: its prompt is computed, the program ends, and another one begins with the same prompt.

    python -m benchmarks.reopen MODEL.gguf [--tokens 8192] [--kv f16]

Prints the time of the prefill, the time to bring the blocks back from the disk (out of the page cache, since they were
just written), and whether both answer the same.
"""

import argparse
import os
import tempfile
from pathlib import Path

from localrun.base.events import Completion, Done
from localrun.base.request import LoadOptions, Request, Sampling
from localrun.client.local import LocalClient
from localrun.formats.detect import open_model_file
from localrun.text.load_text import load_text

BUDGET = 64 << 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--kv", default="f16")
    options = parser.parse_args()
    prompt = prompt_of(options.model, options.tokens)
    with tempfile.TemporaryDirectory() as home:
        os.environ["LOCALRUN_HOME"] = home
        load = LoadOptions(options.model, ctx=options.tokens + 64, kv=options.kv, disk_cache=BUDGET)
        first, again = answer(load, prompt), answer(load, prompt)
    same = "the same answer" if first.token_ids == again.token_ids else "ANOTHER ANSWER"
    print(
        f"{first.prompt_tokens:,} tokens, {options.kv}: prefill {first.timings.prefill_ms / 1000:.1f} s; restored"
        f" {again.cache.restored_tokens:,} tokens in {again.timings.restore_ms / 1000:.2f} s,"
        f" {100 * again.timings.restore_ms / first.timings.prefill_ms:.1f} % of it; {same}"
    )


def prompt_of(model: Path, n_tokens: int) -> str:
    """A text of just under so many tokens."""
    tokenizer = load_text(open_model_file(model)).tokenizer
    words = [f"w{i % 999}" for i in range(n_tokens)]
    low, high = 1, n_tokens
    while low < high:
        middle = (low + high + 1) // 2
        fits = len(tokenizer.encode(" ".join(words[:middle]), bos=True)) <= n_tokens
        low, high = (middle, high) if fits else (low, middle - 1)
    return " ".join(words[:low])


def answer(load: LoadOptions, prompt: str) -> Completion:
    with LocalClient(load) as client:
        request = Request(prompt=prompt, sampling=Sampling(temperature=0.0), max_tokens=4, chat_id="benchmark")
        return next(event.completion for event in client.generate(request) if isinstance(event, Done))


if __name__ == "__main__":
    main()
