"""States of recurrent layers, on any torch device: a block is one state of every layer of a group."""

from collections.abc import Sequence

import torch
from torch import Tensor

from localrun.ops.cache_layer import CacheLayer
from localrun.ops.interface import SequenceInput


class StateStore:
    """All states of one group, f32."""

    def __init__(self, n_blocks: int, members: Sequence[CacheLayer], device: torch.device) -> None:
        self.states = torch.zeros(n_blocks, len(members), members[0].state_size, device=device)
        self.planes: tuple[Tensor, ...] = (self.states,)
        self.block_bytes = self.states[:1].nbytes
        self.nbytes = self.states.nbytes

    def before(self, sequence: SequenceInput, layer: CacheLayer) -> Tensor:
        """A layer's state before the step, zeros at the beginning of a text. f32 [state_size]"""
        block = sequence.state[layer.group]
        return self.states[block, layer.index].clone() if block >= 0 else torch.zeros_like(self.states[0, layer.index])

    def put(
        self, sequence: SequenceInput, layer: CacheLayer, position: int, block_tokens: int, state: Tensor, at: int
    ) -> None:
        """Keep a layer's state after the token at `position` where it is wanted: at ends of blocks, and of the step.
        `at`: the number of the state that `state` begins with."""
        if (position + 1) % block_tokens == 0 or position + 1 == sequence.length:
            block = sequence.block(layer.group, position // block_tokens)
            if block >= 0:
                self.states[block, layer.index, at : at + len(state)] = state

    def copy(self, source: int, target: int) -> None:
        self.states[target] = self.states[source]

    def to_bytes(self, block: int) -> bytes:
        return self.states[block].cpu().numpy().tobytes()

    def from_bytes(self, block: int, data: bytes | memoryview) -> None:
        assert len(data) == self.block_bytes
        read = torch.frombuffer(bytearray(data), dtype=torch.float32)
        self.states[block] = read.view(self.states[block].shape).to(self.states.device)

    def close(self) -> None:
        """Let go of the states; their sizes may still be asked for."""
        del self.states, self.planes
