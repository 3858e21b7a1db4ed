"""Chats to batches: tokenised on the fly, sorted by length, so that little padding is computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count, islice
from random import Random

import torch
from tokenizers import Tokenizer
from torch import Tensor

from tools.builtin_data.compose import chats
from tools.builtin_data.skills import SKILLS, Skill
from tools.builtin_tokenizer import encode_chat

POOL = 3000  # chats drawn at a time; batches are formed within a pool
LENGTH_STEP = 32

Row = tuple[list[int], list[float]]  # token ids of a chat, and how much each counts


@dataclass(frozen=True)
class Batch:
    inputs: Tensor  # [batch, tokens] int64
    targets: Tensor  # [n_spoken] int64: only what the model itself must say is learnt
    weights: Tensor  # [n_spoken] float32
    positions: Tensor  # [n_spoken] in the flattened inputs


def padded(ids: list[int]) -> int:
    """Tokens of a row that is given these ids: all but the last, rounded up."""
    return -(-(len(ids) - 1) // LENGTH_STEP) * LENGTH_STEP


def make_batch(rows: list[Row], pad: int) -> Batch:
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
    tokenizer: Tokenizer,
    seed: int,
    tokens: int,
    max_context: int,
    rank: int = 0,
    workers: int = 1,
    skills: Mapping[Skill, float] = SKILLS,
) -> Iterator[Batch]:
    """Batches of up to `tokens` tokens, without end. All workers draw the same pools and share their batches out.

    At every step theirs are neighbours in length, for they wait for one another. The shortest chats of a pool are
    left out where they do not go round.
    """
    for pool in count():
        rng = Random(f"{seed}:{pool}")
        drawn = islice(chats(seed, pool * POOL, skills), POOL)
        whole = (encode_chat(tokenizer, chat, rng) for chat in drawn)
        rows = sorted(
            ((ids[:max_context], weights[:max_context]) for ids, weights in whole), key=lambda row: len(row[0])
        )
        groups = in_groups(rows, tokens)
        steps = [groups[i : i + workers] for i in range(len(groups) % workers, len(groups), workers)]
        rng.shuffle(steps)
        for step in steps:
            yield make_batch(step[rank], pad=0)


def in_groups(rows: list[Row], tokens: int) -> list[list[Row]]:
    """Rows in this order, as many to a group as fit into `tokens` when all are as long as its last."""
    groups: list[list[Row]] = [[]]
    for row in rows:
        if groups[-1] and (len(groups[-1]) + 1) * padded(row[0]) > tokens:
            groups.append([])
        groups[-1].append(row)
    return groups
