"""Train the built-in model from nothing: data, vocabulary, network, GGUF.

    python -m tools.train_builtin --work /tmp/builtin

Everything follows from the seed. The work folder holds the vocabulary, a checkpoint to resume from, and a log;
at the end (and with --export-only at any time) it holds the GGUF too.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor

from tools.builtin_batches import Batch, batches
from tools.builtin_data.compose import chats
from tools.builtin_data.skills import LAST_SKILLS
from tools.builtin_export import write_gguf
from tools.builtin_init import start
from tools.builtin_memory import give_memory_back, keep_memory
from tools.builtin_model import Decoder, Shape
from tools.builtin_tokenizer import load_tokenizer, train_tokenizer

MUON_LR = 0.01
NEWTON_SCHULZ_STEPS = 5  # by which Muon makes an update orthogonal
ADAM_LR = 2e-3
EMBEDDING_LR = 2e-2
OUTPUT_EPS = 3e-6  # without it, Adam unlearns tokens that are rarely said as fast as it learns the others
WARM_UP = 50
PRECISIONS = ("F16", "Q8_0", "Q4_0")  # of the files written at the end; Q8_0 is the one that is shipped
EMA_DECAY = 0.99


@dataclass(frozen=True)
class Plan:
    work: Path
    steps: int
    decay_from: int
    tokens_per_step: int
    seed: int
    vocab_size: int
    workers: int = 1
    last_steps: int = 0  # more, with LAST_SKILLS, while the learning rate falls once more


def get_tokenizer(plan: Plan) -> Tokenizer:
    """The vocabulary of this work folder, learnt from 30,000 chats on first use."""
    path = plan.work / "tokenizer.json"
    if path.exists():
        return load_tokenizer(path)
    texts = (message.content for chat in islice(chats(plan.seed + 1), 30_000) for message in chat)
    tokenizer = train_tokenizer(texts, plan.vocab_size)
    tokenizer.save(str(path))
    return tokenizer


def optimizers(model: Decoder) -> list[torch.optim.Optimizer]:
    """Muon for the matrices of the layers, Adam for the embedding, the output and the norms."""
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and name.startswith("layers.")]
    others = [p for p in model.parameters() if p.ndim == 1]
    return [
        torch.optim.Muon(matrices, lr=MUON_LR, weight_decay=0.01, momentum=0.95, ns_steps=NEWTON_SCHULZ_STEPS),
        torch.optim.AdamW(
            [
                {"params": [model.token_embd.weight], "lr": EMBEDDING_LR},
                {"params": [model.output.weight], "lr": ADAM_LR, "eps": OUTPUT_EPS},
                {"params": others, "lr": ADAM_LR},
            ],
            betas=(0.9, 0.95),
            weight_decay=0.0,
        ),
    ]


def lr_scale(step: int, plan: Plan) -> float:
    """Warm up, stay, then fall linearly to nothing; for the last steps begin as high as they have time to fall."""
    if step < WARM_UP:
        return (step + 1) / WARM_UP
    if step < plan.decay_from:
        return 1.0
    end = plan.steps if step < plan.steps else plan.steps + plan.last_steps
    return max(0.0, (end - step) / max(1, plan.steps - plan.decay_from))


def loss_of(model: Decoder, inputs: Tensor, targets: Tensor, weights: Tensor, positions: Tensor) -> Tensor:
    """The weighted mean of the loss at `positions`."""
    with torch.autocast("cpu", torch.bfloat16):
        hidden = model(inputs, torch.bfloat16)
        logits = model.logits(hidden.flatten(0, 1)[positions])
    losses = F.cross_entropy(logits.float(), targets, reduction="none")
    return losses @ weights / weights.sum()


class Training:
    """The moving parts of a run; all of them go into the checkpoint."""

    def __init__(self, plan: Plan, rank: int = 0) -> None:
        torch.manual_seed(plan.seed)
        self.plan = plan
        self.rank = rank
        self.tokenizer = get_tokenizer(plan)
        self.shape = Shape(self.tokenizer.get_vocab_size())
        self.model = Decoder(self.shape)
        start(self.model)
        self.average = {name: p.detach().clone() for name, p in self.model.named_parameters()}
        # Compiled, what is not a matrix product fuses to few loops: twice the tokens a second.
        self.loss_of = torch.compile(loss_of, dynamic=True)
        self.optimizers = optimizers(self.model)
        self.base_lrs = [group["lr"] for o in self.optimizers for group in o.param_groups]
        self.step = 0
        if self.checkpoint.exists():
            self.load(torch.load(self.checkpoint, weights_only=False))

    @property
    def checkpoint(self) -> Path:
        return self.plan.work / "checkpoint.pt"

    def load(self, saved: dict[str, Any]) -> None:
        self.model.load_state_dict(saved["model"])
        self.average = saved["average"]
        for optimizer, state in zip(self.optimizers, saved["optimizers"], strict=True):
            optimizer.load_state_dict(state)
        self.step = saved["step"]

    def save(self) -> None:
        state = {
            "model": self.model.state_dict(), "average": self.average, "step": self.step,
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
        }  # fmt: skip
        part = self.checkpoint.with_suffix(".part")
        torch.save(state, part)
        part.replace(self.checkpoint)

    def data(self) -> Iterator[Batch]:
        """The batches of all steps still to go: a resumed run goes on as if it had never stopped."""
        plan = self.plan
        common = (plan.tokens_per_step // plan.workers, self.shape.max_context, self.rank, plan.workers)
        if self.step < plan.steps:
            yield from islice(batches(self.tokenizer, plan.seed, *common), self.step, plan.steps)
        last = batches(self.tokenizer, plan.seed + 2, *common, LAST_SKILLS)
        yield from islice(last, self.step - plan.steps, plan.last_steps)

    def run(self) -> None:
        since, seen, losses = time.time(), 0, []
        for batch in self.data():
            losses.append(self.update(batch))
            seen += batch.inputs.numel() * self.plan.workers
            if self.step % 20 == 0 and self.rank == 0:
                self.report(sum(losses) / len(losses), seen / (time.time() - since))
                since, seen, losses = time.time(), 0, []
            if self.step % 100 == 0 and self.rank == 0:
                self.save()
            if self.step % 250 == 0:
                give_memory_back()  # not often: to take it anew costs some seconds
        if self.rank == 0:
            self.save()

    def update(self, batch: Batch) -> float:
        scale = lr_scale(self.step, self.plan)
        groups = [group for optimizer in self.optimizers for group in optimizer.param_groups]
        for group, base in zip(groups, self.base_lrs, strict=True):
            group["lr"] = base * scale
        loss = self.loss_of(self.model, batch.inputs, batch.targets, batch.weights, batch.positions)
        loss.backward()
        if self.plan.workers > 1:
            self.average_gradients()
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            decay = min(EMA_DECAY, self.step / (self.step + 10))
            torch._foreach_lerp_(list(self.average.values()), list(self.model.parameters()), 1 - decay)
        self.step += 1
        return loss.item()

    def average_gradients(self) -> None:
        gradients = [p.grad for p in self.model.parameters() if p.grad is not None]
        flat = torch.cat([g.flatten() for g in gradients])
        dist.all_reduce(flat)
        for g, mean in zip(gradients, flat.div_(self.plan.workers).split([g.numel() for g in gradients]), strict=True):
            g.copy_(mean.view_as(g))

    def report(self, loss: float, speed: float) -> None:
        line = {"step": self.step, "loss": round(loss, 4), "tokens_per_s": round(speed)}
        print(json.dumps(line), flush=True)

    def export(self) -> None:
        for qtype in PRECISIONS:
            write_gguf(self.plan.work / f"localrun-tiny-{qtype}.gguf", self.average, self.shape, self.tokenizer, qtype)


def work(rank: int, plan: Plan) -> None:
    """One of several workers: the same weights, chats of its own, gradients averaged at every step."""
    torch.set_num_threads(1)
    rendezvous = f"file://{(plan.work / 'rendezvous').resolve()}"
    dist.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=plan.workers)
    Training(plan, rank).run()
    dist.destroy_process_group()


def start_workers(plan: Plan) -> None:
    """Run until all workers are done. The first failure ends them all, for the others would wait for it for ever."""
    keep_memory()
    processes = [get_context("spawn").Process(target=work, args=(i, plan), daemon=True) for i in range(plan.workers)]
    for process in processes:
        process.start()
    while any(process.is_alive() for process in processes) and not any(process.exitcode for process in processes):
        time.sleep(1)
    if any(process.exitcode for process in processes):
        sys.exit("A worker failed; its error stands above.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder for vocabulary, checkpoint and GGUF")
    parser.add_argument("--steps", type=int, default=6400)
    parser.add_argument("--last-steps", type=int, default=900, help="more, with somewhat other shares of skills")
    parser.add_argument("--decay-from", type=int, default=None, help="step at which the learning rate begins to fall")
    parser.add_argument("--tokens-per-step", type=int, default=8192)
    parser.add_argument("--vocab-size", type=int, default=2560)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2, help="processes of one thread each that share a step")
    parser.add_argument("--export-only", action="store_true", help="write the GGUF of the checkpoint and stop")
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.work.mkdir(parents=True, exist_ok=True)
    decay_from = args.steps // 2 if args.decay_from is None else args.decay_from
    lengths = (args.steps, decay_from, args.tokens_per_step)
    plan = Plan(args.work, *lengths, args.seed, args.vocab_size, args.workers, args.last_steps)
    get_tokenizer(plan)
    if args.workers > 1 and not args.export_only:
        (plan.work / "rendezvous").unlink(missing_ok=True)
        start_workers(plan)
    elif not args.export_only:
        Training(plan).run()
    Training(plan).export()


if __name__ == "__main__":
    main()
