"""Calls of tools: whether random ones are read as what was meant, and what a real model calls.

    python -m benchmarks.tool_calls [--calls 100000] [--model MODEL] [--questions 20]

Random answers with one to three calls are written in every dialect, with some of its marks as tokens, and read whole
and in random pieces: both have to be what was meant. With `--model`, that model is asked for the weather and for the
time with two tools, of its own accord and so that it has to call: every call has to hold to its schema, and how often
it is the right one is printed.
"""

import argparse
import json
import random
import sys
import time
from typing import Any

import jsonschema  # type: ignore[import-untyped]
from localrun_testing.tool_calls import wrong_readings

import localrun
from benchmarks.kv_quality import machine
from localrun.base.events import Completion
from localrun.text.tool_calls.dialects import DIALECTS

CITIES = ("Paris", "Rome", "Oslo", "Lima", "Cairo", "Delhi", "Quito", "Tokyo", "Bern", "Riga")
SCHEMAS: dict[str, dict[str, Any]] = {
    "get_weather": {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "Name of the city", "maxLength": 40}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "get_time": {
        "type": "object",
        "properties": {"zone": {"enum": ["UTC", "local"]}},
        "required": ["zone"],
        "additionalProperties": False,
    },
}
ABOUT = {"get_weather": "Get the weather in a city", "get_time": "Get the time of day now"}
TOOLS = [
    {"type": "function", "function": {"name": name, "description": ABOUT[name], "parameters": schema, "strict": True}}
    for name, schema in SCHEMAS.items()
]


def read_random(n_calls: int) -> bool:
    """Print how many answers in each dialect are read wrongly -> whether none is."""
    each, n_wrong, started = -(-n_calls // len(DIALECTS) // 2), 0, time.perf_counter()
    for dialect in DIALECTS:
        if wrong := wrong_readings(dialect, random.Random(dialect.name), each):
            n_wrong += len(wrong)
            print(f"  {dialect.name}: {len(wrong)} wrong, such as {wrong[0][:200]!r}")
    n = each * len(DIALECTS)
    print(f"{n:,} answers with {2 * n:,} calls or so in {len(DIALECTS)} dialects: {n_wrong} read wrongly", end="")
    print(f" ({time.perf_counter() - started:.0f} s)")
    return n_wrong == 0


def ask_model(model: str, n_questions: int) -> None:
    """Print what a model calls."""
    with localrun.LLM(model, ctx=2048) as llm:
        for choice in ("auto", "required"):
            n_called = n_calls = n_valid = n_right = 0
            for number in range(n_questions):
                city, asks_time = CITIES[number % len(CITIES)], number % 2
                question = "What time is it now?" if asks_time else f"What is the weather in {city} today?"
                said = llm.generate(question, tools=TOOLS, tool_choice=choice, max_tokens=120, seed=number)
                n_called += bool(said.tool_calls)
                n_calls += len(said.tool_calls)
                n_valid += sum(is_valid(said))
                n_right += is_right(said, "get_time" if asks_time else "get_weather", "" if asks_time else city)
            print(f"{model}, {choice}: {n_called} of {n_questions} answers call, {n_calls} calls, ", end="")
            print(f"{n_valid} of them valid or cut; in {n_right} answers the first call is the right one")


def is_valid(said: Completion) -> list[bool]:
    """Whether each call holds to the schema of its tool, or is the last one and cut."""
    return [
        jsonschema.Draft202012Validator(SCHEMAS[call.name]).is_valid(json.loads(call.arguments))
        if call.is_complete
        else call is said.tool_calls[-1] and said.stop_reason == "length"
        for call in said.tool_calls
    ]


def is_right(said: Completion, name: str, city: str) -> bool:
    """Whether the first call is of the right tool, for the right city."""
    return bool(said.tool_calls) and said.tool_calls[0].name == name and city in said.tool_calls[0].arguments


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--model")
    parser.add_argument("--questions", type=int, default=20)
    arguments = parser.parse_args()
    print(machine())
    is_well = read_random(arguments.calls)
    if arguments.model:
        ask_model(arguments.model, arguments.questions)
    sys.exit(not is_well)


if __name__ == "__main__":
    main()
