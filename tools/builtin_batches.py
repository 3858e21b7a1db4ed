"""Chats to batches: tokenised on the fly, sorted by length, so that little padding is computed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from random import Random

import torch
from tokenizers import Tokenizer
from torch import Tensor

from tools.builtin_data.compose import chats
from tools.builtin_tokenizer import encode_chat

POOL = 3000  # chats drawn at a time; batches are formed within a pool
LENGTH_STEP = 32


@dataclass(frozen=True)
class Batch:
    inputs: Tensor  # [batch, tokens] int64
    targets: Tensor  # [n_spoken] int64: only what the model itself must say is learnt
    weights: Tensor  # [n_spoken] float32
    positions: Tensor  # [n_spoken] in the flattened inputs


def padded(ids: list[int]) -> int:
    """Tokens of a row that is given these ids: all but the last, rounded up."""
    return -(-(len(ids) - 1) // LENGTH_STEP) * LENGTH_STEP


def make_batch(rows: list[tuple[list[int], list[float]]], pad: int) -> Batch:
    length = max(padded(ids) for ids, _ in rows)
    inputs = torch.full((len(rows), length), pad)
    targets: list[int] = []
    weights: list[float] = []
    positions: list[int] = []
    for row, (ids, counts) in enumerate(rows):
        inputs[row, : len(ids) - 1] = torch.tensor(ids[:-1])
        for i in range(1, len(ids)):
            if counts[i]:
                targets.append(ids[i])
                weights.append(counts[i])
                positions.append(row * length + i - 1)
    return Batch(inputs, torch.tensor(targets), torch.tensor(weights), torch.tensor(positions))


def batches(
    tokenizer: Tokenizer, seed: int, tokens: int, max_context: int, rank: int = 0, workers: int = 1
) -> Iterator[Batch]:
    """Batches of up to `tokens` tokens, without end; each of several workers draws pools of its own."""
    pool = rank
    while True:
        rng = Random(f"{seed}:{pool}")
        drawn = islice(chats(seed, pool * POOL), POOL)
        whole = (encode_chat(tokenizer, chat, rng) for chat in drawn)
        rows = sorted(
            ((ids[:max_context], weights[:max_context]) for ids, weights in whole), key=lambda row: len(row[0])
        )
        made, current = [], rows[:0]
        for row in rows:
            if current and (len(current) + 1) * padded(row[0]) > tokens:
                made.append(make_batch(current, pad=0))
                current = []
            current.append(row)
        made.append(make_batch(current, pad=0))
        rng.shuffle(made)
        yield from made
        pool += workers
