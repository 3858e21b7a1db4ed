"""Score the built-in model on chats it was never trained on, and show those that fail.

python -m tools.eval_builtin localrun/builtin/localrun-tiny.gguf
python -m tools.eval_builtin MODEL --as sampled       (at the file's own settings instead of greedily)
python -m tools.eval_builtin MODEL --as llama.cpp     (needs the llama-cpp-python package)
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path
from random import Random

from tools.builtin_answers import NO_END, WAYS, Answer
from tools.builtin_data import arithmetic
from tools.builtin_data.heldout import PROBES, Probe
from tools.builtin_data.made_up import nonsense_word
from tools.builtin_tokenizer import Message

# Every skill of the held-out chats belongs to one category; the share that must be right is the target.
CATEGORIES: dict[str, tuple[float, tuple[str, ...]]] = {
    "manners and itself": (0.95, ("greet", "hello", "self")),
    "names": (0.98, ("name", "new names")),
    "facts told before": (0.95, ("memory", "facts")),
    "localrun": (0.98, ("commands", "download")),
    "KV cache and models": (
        0.98,
        ("second_token", "kv_cache", "cache", "speed", "weights", "concepts", "terms", "follow-ups"),
    ),
    "stories and poems": (0.95, ("story", "tales")),
    "sums": (0.95, ("arithmetic", "numbers", "sums +", "sums -", "sums ×", "sums /")),
    "small puzzles": (0.95, ("puzzles",)),
    "refusing": (0.95, ("refuse", "limits")),
    "mixed chats": (0.95, ("fresh", "mixtures", "system")),
}


def sums(n: int) -> list[Probe]:
    """Random sums over the whole trained range, in the plain form people type."""
    rng = Random(2024)
    probes = []
    for _ in range(n):
        op = rng.choice("++--×/")
        a, b = arithmetic.operands(rng, op)
        text, _ = arithmetic.solve(a, op, b)
        result = text.rstrip(".").rpartition("=")[2].strip()
        wanted = f'"= {result}"' if b or op != "/" else "by zero"
        probes.append(Probe(f"sums {op}", (f"What is {a} {op.replace('×', '*')} {b}?",), ((wanted,),)))
    return probes


def new_names(n: int) -> list[Probe]:
    """Names and colours that were never seen, asked for after three other turns; every other one in lower case."""
    rng = Random(77)
    probes = []
    for i in range(n):
        name, colour = nonsense_word(rng), nonsense_word(rng)
        told = f"hi, my name is {name} and my favourite colour is {colour}"
        if i % 4 < 2:
            told = f"Hi, my name is {name.capitalize()} and my favourite colour is {colour}."
        asked, wanted = ("What's my name?", name) if i % 2 else ("What is my favourite colour?", colour)
        users = (told, "What is a KV cache?", "7 + 5?", "Tell me a joke!", asked)
        probes.append(Probe("new names", users, ((f'"{wanted}"',),)))
    return probes


def ask(probe: Probe, reply: Answer) -> list[Message]:
    chat = [Message("system", probe.system)] if probe.system else []
    for user in probe.users:
        chat.append(Message("user", user))
        chat.append(Message("assistant", reply(chat)))
    return chat


def passes(probe: Probe, chat: list[Message]) -> bool:
    """The last answer holds what it must, and every answer of the chat comes to an end."""
    return probe.passes(chat[-1].content) and not any(m.content.endswith(NO_END) for m in chat)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--as", dest="way", choices=sorted(WAYS), default="greedy")
    parser.add_argument("--verbose", action="store_true", help="show every chat, not only the failed ones")
    parser.add_argument("--sums", type=int, default=100, help="sums drawn at random")
    parser.add_argument("--names", type=int, default=40, help="names and colours made up")
    args = parser.parse_args()
    reply = WAYS[args.way](args.model)
    scores: dict[str, list[bool]] = defaultdict(list)
    for probe in [*PROBES, *sums(args.sums), *new_names(args.names)]:
        chat = ask(probe, reply)
        passed = passes(probe, chat)
        scores[probe.skill].append(passed)
        if args.verbose or not passed:
            print(f"\n{'right' if passed else 'WRONG'}: {probe.skill}, wanted {probe.expect}")
            print("\n".join(f"    {m.role}: {m.content}" for m in chat), flush=True)
    print("\n| | right | | target |\n|---|---|---|---|")
    for category, (target, skills) in CATEGORIES.items():
        results = [passed for skill in skills for passed in scores.pop(skill, [])]
        if results:
            print(line(category, results) + f" {target:.0%} |")
    assert not scores, f"skills without a category: {', '.join(scores)}"


def line(name: str, results: list[bool]) -> str:
    return f"| {name} | {sum(results)} / {len(results)} | {sum(results) / len(results):.1%} |"


if __name__ == "__main__":
    main()
