"""The reference operations as a backend: plain torch runs any model and type, slowly. Torch is imported when used."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from localrun.backends.decode_cost import DecodeCost
from localrun.backends.reference.scratch import encoder_bytes, step_bytes
from localrun.base.errors import DoesNotFitError, ran_out
from localrun.base.machine import Memory, peak_rss
from localrun.cache.kinds.interface import CacheKind
from localrun.formats.quant import QUANT_TYPES
from localrun.ops.kv import BLOCK_TOKENS, KVCodec

if TYPE_CHECKING:
    import torch

    from localrun.backends.executor import Executor, ExecutorRequest
    from localrun.backends.limits import LimitProbe
    from localrun.ops.encoder_program import Encoder, EncoderRecording
    from localrun.ops.layouts import Layout
    from localrun.ops.recording import Recording

DENSE_SHARE = 0.5  # of free memory that weights decoded to f32 may take


class ReferenceBackend:
    """The reference in main memory; a device of torch inherits from it and says where its memory is."""

    name = "reference"
    note = ""
    program_bytes = 400 << 20
    growth_bytes = 32 << 20  # torch reads its code when it is first used
    grows = False
    maps_weights = False
    measures_limits = False

    @property
    def kernels(self) -> frozenset[str]:
        return frozenset()

    @property
    def torch_name(self) -> str:
        """The device of torch that computes."""
        return "cpu"

    @property
    def device(self) -> torch.device:
        import torch

        return torch.device(self.torch_name)

    @property
    def in_main_memory(self) -> bool:
        return self.torch_name == "cpu"

    @property
    def chip(self) -> str:
        """The processor or GPU that computes: another one may round otherwise."""
        return self.torch_name

    @property
    def rounding(self) -> str:
        import torch

        return f"reference {self.chip} {torch.__version__} {os.environ.get('LOCALRUN_REFERENCE')}"

    def why_unavailable(self) -> str:
        return ""

    def degraded_reason(self) -> str:
        return ""

    def self_test(self) -> str:
        return ""

    def summary(self) -> str:
        return ""

    def details(self) -> dict[str, Any]:
        return {}

    def why_not(self, model: Recording, matrix_types: Iterable[str]) -> str:
        return ""

    def without_kernels(self, model: Recording) -> Sequence[str]:
        return ()

    def decode_cost(self, model: Recording) -> DecodeCost:
        return DecodeCost()

    def memory(self, main: Memory) -> Memory:
        return main

    def peak_bytes(self) -> int:
        return peak_rss()

    def layout_name(self, qtype: str) -> str:
        return "reference"

    def matrix_bytes(self, qtype: str, n_rows: int, n_cols: int) -> int:
        return QUANT_TYPES[qtype].nbytes((n_rows, n_cols))

    def block_bytes(self, codec: KVCodec, kind: CacheKind) -> int | None:
        return kind.block_bytes(codec, BLOCK_TOKENS)

    def scratch_bytes(
        self, model: Recording, ctx: int, codecs: tuple[KVCodec, ...], threads: int, sequences: int
    ) -> int:
        return step_bytes(model, ctx, codecs)

    def limit_probe(self, threads: int) -> LimitProbe:
        from localrun.backends.reference.limits import NumpyLimitProbe

        return NumpyLimitProbe(threads)

    def layout(self, dense_bytes: int, budget: int, threads: int) -> Layout:
        """Decoded once to f32 where memory is plentiful, otherwise as the file has them."""
        import torch

        from localrun.ops.layouts import F32, FILE

        torch.set_num_threads(threads)
        return F32 if dense_bytes <= DENSE_SHARE * budget else FILE

    def encoder(self, layout: Layout, recording: EncoderRecording, max_rows: int) -> Encoder:
        from localrun.backends.reference.encoder import ReferenceEncoder

        return ReferenceEncoder(recording, self.device)

    def encoder_bytes(self, recording: EncoderRecording, n_rows: int, threads: int) -> int:
        return encoder_bytes(recording, n_rows)

    def executor(self, request: ExecutorRequest) -> Executor:
        import torch

        torch.set_float32_matmul_precision("highest")  # no TF32: the reference defines what correct means
        try:
            return self.make_executor(request)
        except RuntimeError as error:
            if not ran_out(error):
                raise
        raise DoesNotFitError("memory ran out while making room for the KV cache", "try a smaller context with --ctx")

    def make_executor(self, request: ExecutorRequest) -> Executor:
        """The executor, without its memory."""
        from localrun.backends.reference.executor import ReferenceExecutor
        from localrun.backends.reference.ops import ReferenceOps
        from localrun.backends.reference.rows import RowReferenceOps

        ops = RowReferenceOps if os.environ.get("LOCALRUN_REFERENCE") == "rows" else ReferenceOps
        return ReferenceExecutor(request, self.device, ops)


def why_torch_cannot_use(name: str, title: str, is_there: bool) -> str:
    """Why torch cannot compute on its device `name`; empty where it can."""
    import torch

    if not is_there:
        return f"this machine has no {title} that torch can use"
    try:
        torch.ones(1, device=name).sum().item()
    except RuntimeError as error:  # too old for this torch, all of its memory taken, or kept by another program
        return f"torch cannot use the {title}: {str(error).partition(chr(10))[0]}"
    return ""
