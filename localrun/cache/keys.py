"""Names of blocks that outlive their process. Bytes and ints, no tensors."""

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Key:
    """Names a block by all ids up to its end, `n_tokens` of them; `before` names the block it follows."""

    before: bytes
    own: bytes
    n_tokens: int

    @property
    def name(self) -> str:
        return f"{self.before.hex()}-{self.own.hex()}"


def digest(*parts: bytes) -> bytes:
    """16 bytes that stand for `parts`, each delimited by its length."""
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(len(part).to_bytes(8, "little") + part)
    return hashed.digest()[:16]
