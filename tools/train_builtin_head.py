"""Train the head of the built-in model: a layer that drafts tokens, on the frozen, shipped body.

    python -m tools.train_builtin_head --out localrun/builtin/localrun-tiny-mtp.gguf

The body's own hidden rows, as localrun computes them, are what it learns from, and the body's next choice is what it
learns: the likeliest token after each of an answer, then the one after that from its own hidden rows, as a draft of
several tokens does. Everything follows from the seed; a quarter of an hour on one core.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from gguf import GGUFReader
from gguf.quants import dequantize
from torch import Tensor, nn

from localrun.base.machine import peak_rss
from localrun.base.request import LoadOptions
from localrun.base.resources import resource
from localrun.base.units import gib
from localrun.client.local import LocalClient
from tools.builtin_data.compose import chats
from tools.builtin_export import LAYER_TENSORS, interleave_rotary
from tools.builtin_model import Layer, RMSNorm, Shape, rotary_table
from tools.builtin_tokenizer import ASSISTANT, END, render
from tools.gguf_write import Typed, write_gguf

BODY = Path(str(resource("localrun/builtin/localrun-tiny.gguf")))
DEPTHS = (1.0, 0.6, 0.4)  # weight of the drafted tokens: the first, and those after it
LONGEST = 320  # tokens of a chat
ROWS = 1500  # tokens of a batch, about
MUON_LR, ADAM_LR = 0.01, 1e-3


@dataclass(frozen=True)
class Chat:
    """Token ids, the body's hidden rows f16 [n, hidden], and which tokens the body says."""

    ids: Tensor
    hidden: Tensor
    said: Tensor


class Body:
    """Frozen weights of the shipped file that the head reads."""

    def __init__(self, path: Path) -> None:
        reader = GGUFReader(path)
        self.tensors = {one.name: torch.tensor(dequantize(one.data, one.tensor_type)) for one in reader.tensors}
        self.embed, self.output = self.tensors["token_embd.weight"], self.tensors["output.weight"]
        self.shape = Shape(len(self.embed))


class Head(nn.Module):
    """Embedding of a token and the hidden row before it -> a hidden row, whose logits are of the token after next."""

    def __init__(self, body: Body) -> None:
        super().__init__()
        shape = body.shape
        self.enorm, self.hnorm, self.shared_head_norm = (RMSNorm(shape.hidden_size, shape.rms_eps) for _ in range(3))
        self.eh_proj = nn.Linear(2 * shape.hidden_size, shape.hidden_size, bias=False)
        self.layer = Layer(shape)
        self.cos, self.sin = rotary_table(shape)
        with torch.no_grad():
            half = shape.hidden_size
            self.eh_proj.weight[:, :half].normal_(0, half**-0.5)
            self.eh_proj.weight[:, half:] = torch.eye(half)
            self.shared_head_norm.weight.copy_(body.tensors["output_norm.weight"])

    def forward(self, token: Tensor, hidden: Tensor) -> Tensor:  # [batch, n, hidden] each
        n = token.shape[1]
        mask = torch.full((n, n), -torch.inf).triu(1)
        x = self.eh_proj(torch.cat([self.enorm(token), self.hnorm(hidden)], -1))
        out: Tensor = self.shared_head_norm(self.layer(x, self.cos[:n], self.sin[:n], mask))
        return out


def read_chats(client: LocalClient, seed: int, n: int) -> Iterator[Chat]:
    """Chats of the body's world, with its hidden rows."""
    tokenizer = client.model.text.tokenizer
    assistant, end = (tokenizer.encode(token, special=True)[0] for token in (ASSISTANT, END))
    for chat in islice(chats(seed), n):
        ids = tokenizer.encode(render(chat), special=True)[:LONGEST]
        said, speaks = [], False
        for token in ids:
            said.append(speaks)
            speaks = token == assistant or (speaks and token != end)
        hidden = torch.tensor(client.hidden(ids)).half()
        yield Chat(torch.tensor(ids), hidden, torch.tensor(said))


def batches(known: list[Chat], dice: np.random.Generator) -> Iterator[list[Chat]]:
    """Chats of about one length, without end."""
    by_length = sorted(known, key=lambda chat: len(chat.ids))
    groups: list[list[Chat]] = [[]]
    for chat in by_length:
        if groups[-1] and (len(groups[-1]) + 1) * len(chat.ids) > ROWS:
            groups.append([])
        groups[-1].append(chat)
    while True:
        for index in dice.permutation(len(groups)):
            yield groups[index]


def losses(head: Head, body: Body, group: list[Chat]) -> tuple[Tensor, list[float]]:
    """The loss of all depths, and the share of first choices that are the body's, by depth."""
    pad = nn.utils.rnn.pad_sequence
    ids = pad([chat.ids for chat in group], batch_first=True)
    rows = pad([chat.hidden for chat in group], batch_first=True).float()
    said = pad([chat.said for chat in group], batch_first=True)
    token, hidden = body.embed[ids], rows
    total, right = torch.zeros(()), []
    for depth, weight in enumerate(DEPTHS, 1):  # row i of `hidden` is made of tokens up to i + depth - 1
        hidden = head(token[:, depth:], hidden[:, : ids.shape[1] - depth])
        counts = said[:, depth + 1 :]  # the token after entry i of this depth is number i + depth + 1
        mine = hidden[:, :-1][counts] @ body.output.T
        its = rows[:, depth:-1][counts] @ body.output.T
        total = total + weight * F.cross_entropy(mine, its.softmax(-1))
        right.append(float((mine.argmax(-1) == its.argmax(-1)).float().mean()))
    return total, right


def train(head: Head, body: Body, known: list[Chat], held_out: list[Chat], steps: int, seed: int) -> Iterator[int]:
    """Muon for matrices, AdamW for norms; the rate falls over the second half. Yields when it may be saved."""
    matrices = [p for p in head.parameters() if p.ndim == 2]
    norms = [p for p in head.parameters() if p.ndim == 1]
    optimizers = [
        torch.optim.Muon(matrices, lr=MUON_LR, weight_decay=0.01, momentum=0.95),
        torch.optim.AdamW(norms, lr=ADAM_LR, weight_decay=0.0),
    ]
    rates = [group["lr"] for one in optimizers for group in one.param_groups]
    started, drawn = time.perf_counter(), batches(known, np.random.default_rng(seed))
    for step in range(steps):
        share = min(1.0, (step + 1) / 20, 2 * (1 - step / steps))
        for group, rate in zip((g for one in optimizers for g in one.param_groups), rates, strict=True):
            group["lr"] = rate * share
        loss, right = losses(head, body, next(drawn))
        loss.backward()
        for one in optimizers:
            one.step()
            one.zero_grad()
        if step % 20 == 0 or step == steps - 1:
            shares = ", ".join(f"{share:.3f}" for share in right)
            took = time.perf_counter() - started
            print(f"step {step}: loss {float(loss.detach()):.3f}, right {shares}, {took:.0f} s", flush=True)
            yield step
    with torch.no_grad():
        found = torch.tensor([losses(head, body, [chat])[1] for chat in held_out if int(chat.said.sum()) > 8])
    print(f"held out, by depth: {', '.join(f'{one:.3f}' for one in found.nanmean(0).tolist())}", flush=True)


def save(path: Path, head: Head, body: Body) -> None:
    """Write the head as the layer after those of the body."""
    shape, index = body.shape, body.shape.n_layers
    tensors = {f"blk.{index}.nextn.{name}.weight": getattr(head, name).weight.detach() for name in (
        "enorm", "hnorm", "shared_head_norm", "eh_proj")}  # fmt: skip
    for name in LAYER_TENSORS:
        weight = getattr(head.layer, name).weight.detach()
        if name in ("attn_q", "attn_k"):
            heads = shape.n_heads if name == "attn_q" else shape.n_kv_heads
            weight = torch.tensor(interleave_rotary(weight.numpy(), heads))
        tensors[f"blk.{index}.{name}.weight"] = weight
    metadata = {
        "general.architecture": "llama",
        "general.name": "localrun-tiny-mtp",
        "general.license": "apache-2.0",
        "llama.context_length": shape.max_context,
        "llama.embedding_length": shape.hidden_size,
        "llama.block_count": index + 1,
        "llama.nextn_predict_layers": 1,
        "llama.feed_forward_length": shape.ffn_size,
        "llama.attention.head_count": shape.n_heads,
        "llama.attention.head_count_kv": shape.n_kv_heads,
        "llama.attention.layer_norm_rms_epsilon": Typed(shape.rms_eps, "FLOAT32"),
        "llama.rope.freq_base": Typed(shape.rope_theta, "FLOAT32"),
        "llama.vocab_size": shape.vocab_size,
    }
    qtypes = {name: "F32" if tensor.ndim == 1 else "Q8_0" for name, tensor in tensors.items()}
    write_gguf(path, metadata, tensors, qtypes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--chats", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    client = LocalClient(LoadOptions(BODY, draft="off", threads=options.threads, prefix_cache=False))
    started = time.perf_counter()
    known = list(read_chats(client, options.seed, options.chats + 200))
    client.model.close()
    n = sum(len(chat.ids) for chat in known)
    print(f"{len(known):,} chats, {n:,} tokens, {time.perf_counter() - started:.0f} s", flush=True)
    body = Body(BODY)
    head = Head(body)
    for _ in train(head, body, known[200:], known[:200], options.steps, options.seed):
        save(options.out, head, body)
    n_weights = sum(map(torch.numel, head.parameters()))
    size = f"{options.out.stat().st_size / 1e6:.2f} MB, {n_weights:,} weights"
    print(f"{options.out}: {size}; {gib(peak_rss())} of memory at most")


if __name__ == "__main__":
    main()
