"""Score the built-in model on the held-out questions, and show what it says.

    python -m tools.eval_builtin localrun/builtin/localrun-tiny.gguf
    python -m tools.eval_builtin MODEL --engine llama.cpp     (needs the llama-cpp-python package)

Answers are greedy, so that two engines can be compared word for word.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from random import Random

from tools.builtin_data import arithmetic
from tools.builtin_data.heldout import PROBES, Probe
from tools.builtin_data.made_up import nonsense_word
from tools.builtin_tokenizer import Message, render

MAX_TOKENS = 320
NO_END = " <no end>"
Answer = Callable[[list[Message]], str]


class LlamaCpp:
    """Answer through llama.cpp's C API, as its low-level Python bindings give it."""

    def __init__(self, path: Path) -> None:
        self.api = api = importlib.import_module("llama_cpp.llama_cpp")
        self.log = api.llama_log_callback(lambda level, text, data: None)  # kept: C holds only the address
        api.llama_log_set(self.log, ctypes.c_void_p(0))
        api.llama_backend_init()
        model_params = api.llama_model_default_params()
        model_params.use_extra_bufts = (
            False  # repacked weights need AMX, which a virtual machine may only pretend to have
        )
        self.model = api.llama_model_load_from_file(str(path).encode(), model_params)
        params = api.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_threads, params.n_threads_batch = 1024, 1024, 1, 1
        self.context = api.llama_init_from_model(self.model, params)
        self.vocab = api.llama_model_get_vocab(self.model)
        self.vocab_size = api.llama_vocab_n_tokens(self.vocab)

    def tokens(self, text: str) -> list[int]:
        data = text.encode()
        out = (ctypes.c_int32 * (len(data) + 8))()
        return list(out[: self.api.llama_tokenize(self.vocab, data, len(data), out, len(out), False, True)])

    def text(self, ids: list[int]) -> str:
        buffer = ctypes.create_string_buffer(len(ids) * 32 + 64)
        given = (ctypes.c_int32 * len(ids))(*ids)
        n = self.api.llama_detokenize(self.vocab, given, len(ids), buffer, len(buffer), False, False)
        return buffer.raw[:n].decode(errors="replace")

    def next_token(self, ids: list[int]) -> int:
        given = (ctypes.c_int32 * len(ids))(*ids)
        if self.api.llama_decode(self.context, self.api.llama_batch_get_one(given, len(ids))):
            raise RuntimeError("llama.cpp could not decode")
        logits = self.api.llama_get_logits_ith(self.context, -1)
        return max(range(self.vocab_size), key=logits.__getitem__)

    def __call__(self, messages: list[Message]) -> str:
        self.api.llama_memory_clear(self.api.llama_get_memory(self.context), True)
        said: list[int] = []
        token = self.next_token(self.tokens(render(messages, add_generation_prompt=True)))
        while not self.api.llama_vocab_is_eog(self.vocab, token):
            said.append(token)
            if len(said) == MAX_TOKENS:
                return self.text(said) + NO_END
            token = self.next_token([token])
        return self.text(said)


def with_localrun(path: Path) -> Answer:
    from localrun import LLM

    llm = LLM(str(path))

    def reply(messages: list[Message]) -> str:
        turns = [{"role": m.role, "content": m.content} for m in messages]
        done = llm.chat(turns, temperature=0.0, max_tokens=MAX_TOKENS)
        return done.text if done.stop_reason == "stop" else done.text + NO_END

    return reply


ENGINES: dict[str, Callable[[Path], Answer]] = {"localrun": with_localrun, "llama.cpp": LlamaCpp}


def sums(n: int) -> list[Probe]:
    """Random sums over the whole trained range, in the plain form people type."""
    rng = Random(2024)
    probes = []
    for _ in range(n):
        op = rng.choice("++--×/")
        a, b = arithmetic.operands(rng, op)
        text, _ = arithmetic.solve(a, op, b)
        probes.append(Probe(f"sums {op}", (f"What is {a} {op.replace('×', '*')} {b}?",), ((text.rstrip("."),),)))
    return probes


def strangers(n: int) -> list[Probe]:
    """Names and colours that were never seen, asked for after three other turns."""
    rng = Random(77)
    probes = []
    for i in range(n):
        name, colour = nonsense_word(rng).capitalize(), nonsense_word(rng)
        told = f"Hi, my name is {name} and my favourite colour is {colour}."
        asked, wanted = ("What's my name?", name) if i % 2 else ("What is my favourite colour?", colour)
        probes.append(
            Probe("strangers", (told, "What is a KV cache?", "7 + 5?", "Tell me a joke!", asked), ((wanted,),))
        )
    return probes


def ask(probe: Probe, reply: Answer) -> list[Message]:
    chat = [Message("system", probe.system)] if probe.system else []
    for user in probe.users:
        chat.append(Message("user", user))
        chat.append(Message("assistant", reply(chat)))
    return chat


def passes(probe: Probe, answer: str) -> bool:
    """A refusal where an answer was due is a failure, and so is an answer without end."""
    return probe.passes(answer) and not answer.endswith(NO_END)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--engine", choices=sorted(ENGINES), default="localrun")
    parser.add_argument("--verbose", action="store_true", help="show every chat, not only the failed ones")
    parser.add_argument("--sums", type=int, default=100)
    args = parser.parse_args()
    reply = ENGINES[args.engine](args.model)
    scores: dict[str, list[bool]] = defaultdict(list)
    for probe in [*PROBES, *sums(args.sums), *strangers(30)]:
        chat = ask(probe, reply)
        passed = passes(probe, chat[-1].content)
        scores[probe.skill].append(passed)
        if args.verbose or not passed:
            print(
                "ok  " if passed else "FAIL",
                probe.skill,
                *(f"\n     {m.role[0]}: {m.content}" for m in chat),
                flush=True,
            )
    for skill, results in scores.items():
        print(f"{skill:14} {sum(results):3} / {len(results):3}  {sum(results) / len(results):6.1%}")
    everything = [result for results in scores.values() for result in results]
    print(f"{'all':14} {sum(everything):3} / {len(everything):3}  {sum(everything) / len(everything):6.1%}")


if __name__ == "__main__":
    main()
