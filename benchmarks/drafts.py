"""Answers with drafts beside the same answers without: `python -m benchmarks.drafts MODEL… [--rounds N] [--kind K]`.

Quoting work on texts of this repository, and free prose; greedy and at temperature 0.7. Ids have to be equal. Nothing
is kept between answers, so that none is drafted from an earlier one to the same prompt. A ratio is the time of decoding
without drafts, the mean of two answers, by that with them, of one engine and one after the other: two engines in turns
differ by a fifth where steps take half a millisecond. Medians are of rounds. An answer counts as quoting where
at least 60 % of its tokens stand in its prompt, four in a row, and no loop check ended it; as free prose where fewer do
there or before in itself. Beside each median, of the answers that count: the ratio of the two without drafts, the time
of decoding that went into drafting and into rejected rows, by the engine's own clock, and that of the lookup a step.
"""

import argparse
import statistics
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks.draft_clock import DraftClock, Spent
from localrun.base.events import Completion, Done
from localrun.base.request import LoadOptions, Request
from localrun.client.llm import Options, request_for
from localrun.client.local import LocalClient
from localrun.diagnose.bench_drafts import speculating
from localrun.formats.detect import open_model_file
from localrun.formats.gguf import GgufFile
from localrun.text.tokenizer import Tokenizer, tokenizer_from_gguf

ROOT = Path(__file__).parent.parent
REPEATED_SHARE, IN_A_ROW = 0.6, 4
CODE = (ROOT / "localrun/engine/loops.py").read_text()
JSON = (
    '{"models": [' + ", ".join(f'{{"name": "model-{n}", "layers": {12 + n}, "codec": "q8"}}' for n in range(12)) + "]"
)
LOG = "\n".join(
    f"07:{n:02}:11 INFO  worker {n % 4}: block {64 * n} of 4096 written, {n % 7} waiting" for n in range(20)
)
PAGE = "\n".join((ROOT / "docs/kv-cache.md").read_text().splitlines()[:40])
QUOTING = {
    "edit a file": f"Rename loop_period to period_of_loop in this file. Answer with the whole file:\n\n{CODE}",
    "repeat with a change": f"Repeat this text word for word, but write CACHE for cache:\n\n{PAGE}",
    "fix the JSON": f"A bracket is missing at the end of this JSON. Answer with the corrected JSON only:\n\n{JSON}",
    "go on with a log": f"Go on with this log for twenty more lines:\n\n{LOG}\n",
}
PROSE = {
    "story": "Write a long story about a lighthouse keeper who finds a letter.",
    "letter": "Write a letter to a friend about a week in the mountains.",
    "explain": "Explain in a few paragraphs why the sky is blue and the sunset red.",
    "history": "Tell the history of bread from the beginning.",
}


@dataclass(frozen=True)
class Pair:
    """One answer with drafts, and twice without, and the share of its tokens that could be quoted."""

    drafted: Completion
    plain: tuple[Completion, Completion]
    spent: Spent
    share: float

    @property
    def ratio(self) -> float:
        return statistics.mean(map(decode_ms, self.plain)) / decode_ms(self.drafted)

    @property
    def noise(self) -> float:
        """The ratio of two answers alike."""
        return decode_ms(self.plain[0]) / decode_ms(self.plain[1])


def measure(
    model: str, rounds: int, n_tokens: int, kinds: Sequence[str], temperatures: Sequence[float], draft: str, ctx: int
) -> None:
    """Print the ratios of all tasks on one GGUF model."""
    source = open_model_file(Path(model))
    assert isinstance(source, GgufFile), "a GGUF file is needed"
    tokenizer = tokenizer_from_gguf(source.metadata, source.path)
    clock = DraftClock()
    clock.start()
    with closing(LocalClient(LoadOptions(Path(model), draft=draft, ctx=ctx, prefix_cache=False))) as client:
        for kind, tasks in (("quoting", QUOTING), ("prose", PROSE)):
            for temperature in temperatures if kind in kinds else ():
                counted: list[Pair] = []
                for name, prompt in tasks.items():
                    for number in range(rounds):
                        options = Options(temperature=temperature, max_tokens=n_tokens, seed=number, stop_on_loop=True)
                        answers = ask(client, request_for([{"role": "user", "content": prompt}], options), number)
                        share = repeated_share(tokenizer, prompt, answers[0], in_answer=kind == "prose")
                        pair = Pair(answers[0], answers[1:], clock.take(), share)
                        counts = share < REPEATED_SHARE if kind == "prose" else is_quoted(share, pair.drafted)
                        counted += [pair] * counts
                        print(line(model, kind, name, temperature, pair, counts), flush=True)
                if counted:
                    print(f"{Path(model).stem}  {kind}  temperature {temperature}: {summary(counted)}", flush=True)


def ask(client: LocalClient, request: Request, number: int) -> tuple[Completion, Completion, Completion]:
    """The same answer with drafts, and twice without them; which of the three comes first goes round by `number`."""
    engine, found = client.model.engine, dict[int, Completion]()
    speculation = engine.scheduler.speculation
    for turn in range(3):
        which = (turn + number) % 3
        with speculating(engine, None if which else speculation):
            found[which] = next(event.completion for event in client.generate(request) if isinstance(event, Done))
    assert found[0].token_ids == found[1].token_ids == found[2].token_ids, "drafts changed the answer"
    return found[0], found[1], found[2]


def decode_ms(answer: Completion) -> float:
    return max(1e-9, answer.timings.decode_ms)


def repeated_share(tokenizer: Tokenizer, prompt: str, answer: Completion, in_answer: bool = False) -> float:
    """The share of an answer's tokens that stand in its prompt, four in a row; or `in_answer` before, too."""
    ids, known = answer.token_ids, tokenizer.encode(prompt)
    runs = {tuple(known[n : n + IN_A_ROW]) for n in range(len(known))}
    repeated = set[int]()
    for n in range(len(ids) - IN_A_ROW + 1):
        run = tuple(ids[n : n + IN_A_ROW])
        if run in runs:
            repeated.update(range(n, n + IN_A_ROW))
        elif in_answer:
            runs.add(run)
    return len(repeated) / max(1, len(ids))


def is_quoted(share: float, answer: Completion) -> bool:
    return share >= REPEATED_SHARE and answer.stop_reason != "loop"


def line(model: str, kind: str, name: str, temperature: float, pair: Pair, counts: bool) -> str:
    drafts, n = pair.drafted.drafts, pair.drafted.completion_tokens
    where = "in the prompt or before" if kind == "prose" else "in the prompt"
    return (
        f"  {Path(model).stem[:20]:20} {name:21} t={temperature}  {pair.ratio:5.2f}{'' if counts else ' (not counted)'}"
        f"  {n} tokens, {pair.share:.0%} {where}, {drafts.accepted_tokens} of {drafts.drafted_tokens} drafted,"
        f" {n / max(1, pair.drafted.n_steps):.2f} a step, {pair.plain[0].timings.itl_ms_p50:.2f} ms,"
        f" {pair.drafted.stop_reason}"
    )


def summary(pairs: Sequence[Pair]) -> str:
    """The ratios of answers beside those of two answers alike, and what drafting them took."""
    ratios, spent = [pair.ratio for pair in pairs], sum([pair.spent for pair in pairs], start=Spent())
    noise, decoding = statistics.median(pair.noise for pair in pairs), sum(decode_ms(p.drafted) for p in pairs) / 1000
    lookup = 1e6 * spent.lookup / sum(pair.drafted.n_steps for pair in pairs)
    return (
        f"{statistics.median(ratios):.3f} (worst {min(ratios):.2f}, two alike {noise:.3f}, {len(ratios)} rounds),"
        f" {spent.shares(decoding)}, lookup {lookup:.0f} µs a step"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", help="GGUF files")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=300)
    parser.add_argument("--kind", choices=("quoting", "prose"), action="append")
    parser.add_argument("--temperature", type=float, action="append", help="default: 0 and 0.7")
    parser.add_argument("--draft", default="lookup", help="lookup, mtp, or the path of a smaller model")
    parser.add_argument("--ctx", type=int, default=4096)
    options = parser.parse_args()
    for model in options.models:
        kinds, temperatures = options.kind or ("quoting", "prose"), options.temperature or (0.0, 0.7)
        measure(model, options.rounds, options.tokens, kinds, temperatures, options.draft, options.ctx)


if __name__ == "__main__":
    main()
