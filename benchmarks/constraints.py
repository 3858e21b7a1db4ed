"""Constraints on answers: how many schemas compile, what random models then write, and what a token of it costs.

    python -m benchmarks.constraints --suite FOLDER --bfcl WHEEL [--folder /tmp/models] [--answers 100] [--rounds 9]
    python -m benchmarks.constraints --only-cost [--folder /tmp/models] [--rounds 9]

FOLDER is the unpacked npm package `json-schema-test-suite` (draft 4), WHEEL that of `bfcl-eval`, whose tools are
schemas of real programs. Compiling is timed with a vocabulary of 152k. Each answer is of a model with random weights,
to a schema of either; it is checked by `jsonschema`. A token's cost is that of a long string of JSON beside free text,
in pairs, with the usual sampling and from the whole vocabulary.
"""

import argparse
import json
import statistics
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]

from benchmarks.kv_quality import machine
from benchmarks.synthetic_models import model_file
from localrun.base.constraint import Constraint, check_constraint, of_schema
from localrun.base.errors import ConstraintError
from localrun.base.events import Completion, Done
from localrun.base.request import LoadOptions, Request, Sampling
from localrun.client.local import LocalClient

TYPES = {  # of bfcl's tools, in the words of JSON schema
    "dict": "object", "float": "number", "double": "number", "long": "integer", "tuple": "array", "String": "string",
    "char": "string", "Boolean": "boolean", "Array": "array", "ArrayList": "array", "HashMap": "object",
}  # fmt: skip
PLAIN = ("object", "array", "string", "number", "integer", "boolean", "null")
MOST_TOKENS = 4000  # of an answer: one of random weights seldom ends a string
FLAT = Sampling(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0)
LONG = of_schema({"type": "string", "minLength": 100_000})
TOKENS = 64  # of an answer that is timed


@dataclass(frozen=True)
class Case:
    """A schema, and what its source says of values; bfcl says nothing."""

    source: str
    schema: Any
    tests: tuple[tuple[Any, bool], ...] = ()


def suite_cases(folder: Path) -> Iterator[Case]:
    for file in sorted(folder.glob("tests/draft4/**/*.json")):
        for group in json.loads(file.read_text("utf-8")):
            yield Case(file.stem, group["schema"], tuple((test["data"], test["valid"]) for test in group["tests"]))


def bfcl_cases(wheel: Path) -> Iterator[Case]:
    """The parameters of every tool, once."""
    seen = set()
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if "/data/BFCL" not in name and "func_doc" not in name:
                continue
            for line in archive.read(name).decode().splitlines():
                for schema in parameters_in(line):
                    text = json.dumps(schema)
                    if text not in seen:
                        seen.add(text)
                        yield Case("bfcl", schema)


def parameters_in(line: str) -> Iterator[Any]:
    try:
        record = json.loads(line)
    except ValueError:
        return
    tools = record.get("function", [record] if "parameters" in record else []) if isinstance(record, dict) else []
    for tool in [tools] if isinstance(tools, dict) else tools:
        yield in_json_schema(tool["parameters"])


def in_json_schema(schema: Any) -> Any:
    """A schema in bfcl's words as JSON schema has it."""
    if not isinstance(schema, dict):
        return schema
    kind = TYPES.get(schema.get("type", ""), schema.get("type"))
    kept = {name: schema[name] for name in ("required", "enum") if name in schema}
    if kind in PLAIN:
        kept["type"] = kind
    if isinstance(schema.get("items"), dict):
        kept["items"] = in_json_schema(schema["items"])
    if isinstance(schema.get("properties"), dict):
        kept["properties"] = {name: in_json_schema(one) for name, one in schema["properties"].items()}
    return kept


def compile_all(client: LocalClient, cases: list[Case]) -> list[Case]:
    """Print how many compile, how fast, and whether any takes a wrong value -> those that do."""
    taken, refused, times, wrong = [], Counter[str](), [], []
    for case in cases:
        started = time.perf_counter()
        try:
            constraint = of_schema(case.schema)
            check_constraint(constraint)
            grammar = client.model.constraints.compile(constraint)
        except ConstraintError as error:
            refused[f"{case.source}: {error.message.partition(': ')[2]}"] += 1
            continue
        times.append(1000 * (time.perf_counter() - started))
        taken.append(case)
        wrong += [
            f"{case.source}: {value!r}"
            for value, is_valid in case.tests
            if not is_valid and takes(grammar.matcher, client, value)
        ]
    print(f"  {len(taken)} of {len(cases)} compile ({len(taken) / len(cases):.1%}); ", end="")
    p95 = sorted(times)[int(0.95 * len(times))]
    print(f"ms: median {statistics.median(times):.2f}, p95 {p95:.2f}, most {max(times):.1f}")
    print(f"  wrong values that are taken: {len(wrong)} {wrong[:9]}")
    for why, n in refused.most_common():
        print(f"  refused {n:4} × {why}")
    return taken


def takes(matcher: Any, client: LocalClient, value: Any) -> bool:
    """Whether a value may be an answer, as localrun would have it written."""
    fresh, ids = matcher.deep_copy(), client.model.constraints._tokens(json.dumps(value, ensure_ascii=False).encode())
    return bool(fresh.try_consume_tokens(ids) == len(ids) and fresh.is_accepting())


def answer(
    client: LocalClient, constraint: Constraint | None, seed: int, max_tokens: int, sampling: Sampling
) -> Completion:
    request = Request(
        messages=({"role": "user", "content": "Call it."},),
        sampling=replace(sampling, seed=seed),
        max_tokens=max_tokens,
        constraint=constraint,
    )
    for event in client.generate(request):
        if isinstance(event, Done):
            return event.completion
    raise AssertionError("a generation ends with Done")


def answer_all(client: LocalClient, cases: list[Case]) -> None:
    """Print how many answers of a random model end, are valid, or begin as an answer may."""
    counts, failures = Counter[str](), []

    def one(number: int) -> None:
        case = cases[number]
        said = answer(client, of_schema(case.schema), number, MOST_TOKENS, FLAT)
        if said.stop_reason != "stop":
            matcher = client.model.constraints.compile(of_schema(case.schema)).matcher.deep_copy()
            counts["cut"] += 1
            counts["cut, and a beginning"] += matcher.try_consume_tokens(list(said.token_ids)) == len(said.token_ids)
            return
        counts["ended"] += 1
        try:
            draft = jsonschema.Draft202012Validator if case.source == "bfcl" else jsonschema.Draft4Validator
            draft(case.schema).validate(json.loads(said.text))
            counts["ended and valid"] += 1
        except (ValueError, jsonschema.ValidationError) as error:
            failures.append(f"{case.source}: {said.text[:80]!r}: {str(error)[:80]}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(len(cases))))
    print(f"  {len(cases)} answers: {dict(counts)} {failures[:5]}")


def token_cost(client: LocalClient, rounds: int) -> None:
    """Print what a token takes under a constraint, beside a free one."""
    ends = dict.fromkeys(client.model.text.tokenizer.eog_ids, -1e6)
    for name, sampling in (("usual sampling", Sampling()), ("whole vocabulary", FLAT)):
        sampling = replace(sampling, logit_bias=ends)

        def itl(constraint: Constraint | None, seed: int, sampling: Sampling = sampling) -> float:
            return answer(client, constraint, seed, TOKENS, sampling).timings.itl_ms_p50

        for constraint in (None, LONG):
            itl(constraint, 0)
        pairs = [(itl(None, seed), itl(LONG, seed)) for seed in range(rounds)]
        ratio = statistics.median(held / free for free, held in pairs)
        print(f"  a token, {name}: free {statistics.median(free for free, _ in pairs):.2f} ms, held ", end="")
        print(f"{statistics.median(held for _, held in pairs):.2f} ms; median of {rounds} ratios {ratio - 1:+.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", type=Path)
    parser.add_argument("--bfcl", type=Path)
    parser.add_argument("--only-cost", action="store_true")
    parser.add_argument("--folder", type=Path, default=Path("/tmp/models"))
    parser.add_argument("--answers", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    if not (arguments.only_cost or (arguments.suite and arguments.bfcl)):
        parser.error("--suite and --bfcl say whose schemas, unless it is --only-cost")
    print(machine())
    kept: list[Case] = []
    with LocalClient(LoadOptions(model_file(arguments.folder, "qwen3-0.6b", "F16", None), ctx=1024)) as client:
        started = time.perf_counter()
        client.model.constraints.compile(LONG)
        print(f"152k tokens; the first constraint takes {1000 * (time.perf_counter() - started):.0f} ms")
        if not arguments.only_cost:
            print("json-schema-test-suite")
            kept += compile_all(client, list(suite_cases(arguments.suite)))
            print("bfcl-eval")
            kept += compile_all(client, list(bfcl_cases(arguments.bfcl)))
        token_cost(client, arguments.rounds)
    if not kept:
        return
    step = max(1, len(kept) // arguments.answers)
    with LocalClient(LoadOptions(model_file(arguments.folder, "tiny-windows", "F16", None), ctx=8192)) as client:
        print(f"random weights, {MOST_TOKENS:,} tokens at most")
        answer_all(client, kept[::step])


if __name__ == "__main__":
    main()
