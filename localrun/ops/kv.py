"""KV codecs: how keys and values are stored, one row each. Torch-free; `kv_codes` computes them."""

from localrun.base.dataclass import dataclass

BLOCK_TOKENS = 64  # tokens of a block, the unit of allocation, of sharing and of exactness
MAX_F16 = 65504.0
SCALE_GROUP = 128  # dims that share one fp16 scale (4 bit: scale and offset), per token and KV head


@dataclass(frozen=True, slots=True)
class KVCodec:
    """One way to hold keys and values. `k_bits`, `v_bits` per element, without the scales."""

    name: str
    k_bits: int
    v_bits: int
    native: bool  # stored as plain numbers; otherwise codes and scales
    rotates: bool  # q, k and v are turned by a Hadamard matrix before coding

    def bytes_per_token(self, head_dim: int) -> int:
        """Bytes of K and V of one token and one KV head, scales included."""
        groups = -(-head_dim // SCALE_GROUP)
        return sum(bits * head_dim // 8 + groups * SIDE_BYTES[bits] for bits in (self.k_bits, self.v_bits))


@dataclass(frozen=True, slots=True)
class KVPlan:
    """The codec of every layer. Layers of one group share theirs."""

    codecs: tuple[KVCodec, ...]  # [n_layers]

    @classmethod
    def uniform(cls, codec: KVCodec, n_layers: int) -> "KVPlan":
        return cls((codec,) * n_layers)


SIDE_BYTES = {32: 0, 16: 0, 8: 2, 4: 4}  # of one scale group: nothing, fp16 scale, fp16 scale and offset
KV_CODECS: dict[str, KVCodec] = {
    codec.name: codec
    for codec in (
        KVCodec("f32", 32, 32, native=True, rotates=False),
        KVCodec("f16", 16, 16, native=True, rotates=False),
        KVCodec("q8", 8, 8, native=False, rotates=True),
        KVCodec("k8v4", 8, 4, native=False, rotates=True),
        KVCodec("q4", 4, 4, native=False, rotates=True),
    )
}
