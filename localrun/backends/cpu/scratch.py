"""Working memory of the largest step in the native library, and states: counted before anything is loaded."""

from localrun.backends.cpu.abi import SCRATCH_BYTES
from localrun.backends.cpu.buffers import row_stride
from localrun.model.config import Mixture, ModelConfig, RecurrentMixer
from localrun.model.delta_net import DeltaNet
from localrun.model.mamba2 import Mamba2
from localrun.model.short_conv import GatedShortConv
from localrun.ops.largest_step import MAX_ROWS


def arena_bytes(config: ModelConfig, threads: int, sequences: int) -> int:
    """The library's buffers, at most.

    For every row of a step the residual stream twice, queries twice, keys, values, and what each linear reads in two
    forms; the gate of queries and what it leaves of them; in a mixture of experts what they read and give, for each of
    the choices of a row; what recurrent layers make; what layers are given of a token besides; logits; scratch memory
    of every thread. Layers of different shapes share none of them.
    """
    hidden = config.hidden_size
    queries = {spec.n_heads * spec.head_dim for spec in config.layers}
    keys = {spec.n_kv_heads * spec.head_dim for spec in config.layers if spec.has_attention}
    ffn = {spec.ffn_size for spec in config.layers if not spec.mixture}
    plain = [hidden, hidden, *queries, *queries, *keys, *keys]
    coded = [hidden, *queries, *ffn]
    if size := config.per_layer_size:
        plain += [*(config.n_layers * size,) * 3, size, hidden]
        coded += [size, hidden]
    row = 4 * sum(map(row_stride, (*plain, *coded))) + _codes(*coded)
    row += max((_mixture_row(hidden, spec.ffn_size, spec.mixture) for spec in config.layers if spec.mixture), default=0)
    row += 4 * 2 * sum(map(row_stride, queries)) if any(spec.gated for spec in config.layers) else 0
    row += max((_mixer_row(spec.mixer) for spec in config.layers if spec.mixer), default=0)
    logits = sequences * config.vocab_size * 4
    return MAX_ROWS * row + logits + threads * SCRATCH_BYTES


def state_block_bytes(size: int) -> int:
    """What a state of `size` f32 numbers takes: whole cache lines."""
    return -(-4 * size // 64) * 64


def _mixture_row(hidden: int, ffn: int, mixture: Mixture) -> int:
    """Bytes for a row of a step: its scores, and each choice on its way into an expert, within, and out."""
    coded = (hidden, ffn)
    shared = (mixture.shared_size, hidden, 1) if mixture.shared_size else ()
    choice = 4 * sum(map(row_stride, (*coded, hidden))) + _codes(*coded) + 12
    every = 4 * sum(map(row_stride, (mixture.n_experts, *shared))) + _codes(mixture.shared_size)
    if mixture.apart:  # what the router reads and what the others do, and what the shared expert comes to
        every += 4 * 3 * row_stride(hidden) + _codes(hidden, hidden)
    return every + mixture.routing.n_used * choice


def _mixer_row(mixer: RecurrentMixer) -> int:
    if isinstance(mixer, DeltaNet):
        return _delta_net_row(mixer)
    if isinstance(mixer, Mamba2):
        values = (mixer.channels, mixer.channels, mixer.width, mixer.n_heads, mixer.width)
        return 4 * (sum(map(row_stride, values)) + 2 * mixer.n_heads) + _codes(mixer.width)
    assert isinstance(mixer, GatedShortConv), "the backend refuses other kinds"
    return 4 * (row_stride(3 * mixer.channels) + row_stride(mixer.channels)) + _codes(mixer.channels)


def _delta_net_row(mixer: DeltaNet) -> int:
    """Bytes for a row: channels before and after the convolution, z, alpha, beta, the result in two forms, and what the
    kernel keeps between its phases."""
    width, heads = mixer.n_value_heads * mixer.value_dim, mixer.n_value_heads
    values = (mixer.channels, mixer.channels, width, width, heads, heads)
    between = 2 * (mixer.n_key_heads * mixer.key_dim + heads)
    return 4 * (sum(map(row_stride, values)) + between) + _codes(width)


def _codes(*widths: int) -> int:
    """Bytes of a row in another form than f32: bf16, or codes of up to 16 bits, scales of 32 and sums of 16."""
    return sum(map(row_stride, widths)) * (2 * 32 + 4 + 2 * 4) // 32
