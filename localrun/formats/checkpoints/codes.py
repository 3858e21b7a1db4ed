"""Integer codes as checkpoints pack them, and the blocks of GGUF types that hold the same numbers."""

import numpy as np

BLOCK = 32  # numbers of a block


def unpack(raw: np.ndarray, bits: int) -> np.ndarray:
    """Codes that follow each other bit by bit, the lowest bit first. uint8 [n, bytes] -> uint8 [n, 8 · bytes / bits]

    Eight codes fill `bits` bytes, whatever that is.
    """
    mask, per_byte = (1 << bits) - 1, 8 // bits
    if bits == 4:  # by far the most
        pairs = raw.astype("<u2", order="C")
        pairs |= pairs << 4
        return (pairs & 0x0F0F).view(np.uint8)
    if bits in (1, 2, 4, 8):
        found = np.empty((len(raw), raw.shape[1] * per_byte), np.uint8)
        for place in range(per_byte):
            found[:, place::per_byte] = raw >> np.uint8(bits * place) & np.uint8(mask)
        return found
    eights = np.zeros((len(raw), raw.shape[1] // bits, 8), np.uint8)
    eights[..., :bits] = raw.reshape(len(raw), -1, bits)
    words = eights.view("<u8")  # [n, runs of 8 codes, 1]
    shifts = np.arange(0, 8 * bits, bits, dtype=np.uint64)
    return (words >> shifts & np.uint64(mask)).astype(np.uint8).reshape(len(raw), -1)


def packed(codes: np.ndarray, bits: int) -> np.ndarray:
    """Codes of 1, 2, 4 or 8 bits in bytes, the first in the lowest bits. uint8 [n, c] -> uint8 [n, c · bits / 8]"""
    per_byte = 8 // bits
    found = codes[:, ::per_byte].copy()
    for place in range(1, per_byte):
        found |= codes[:, place::per_byte] << np.uint8(bits * place)
    return found


def unpack_words(words: np.ndarray, bits: int, count: int) -> np.ndarray:
    """The first codes of rows of 32-bit words, the lowest bits first. uint32 [n, words] -> uint8 [n, count]"""
    raw = np.ascontiguousarray(words, "<u4").view(np.uint8)
    if spare := -raw.shape[1] % bits:
        raw = np.pad(raw, ((0, 0), (0, spare)))
    return unpack(raw, bits)[:, :count]


def in_blocks(qtype: str, codes: np.ndarray, scales: np.ndarray, minima: np.ndarray | None = None) -> bytearray:
    """Rows in Q4_0, Q4_1, Q5_0, Q5_1 or Q8_0.

    `codes` are uint8 [n, columns] as those types have them; `scales`, and `minima` for some, are fp16 [n, columns /
    32].
    """
    words = np.ascontiguousarray(codes).reshape(-1, BLOCK).view("<u8")  # [blocks, 4], of 8 codes each
    parts = [part.astype("<f2").ravel() for part in ((scales,) if minima is None else (scales, minima))]
    if qtype.startswith("Q5"):
        parts.append(np.packbits((codes & 16).astype(bool), bitorder="little").view("<u4"))
    if qtype == "Q8_0":
        parts += list(words.T)
    else:  # a code of the first half shares a byte with one of the second
        low = words & np.uint64(0x0F0F0F0F0F0F0F0F)
        parts += [low[:, place] | low[:, place + 2] << 4 for place in (0, 1)]
    return bytearray(np.rec.fromarrays(parts).tobytes())


def affine_blocks(codes: np.ndarray, scales: np.ndarray, minima: np.ndarray) -> bytearray:
    """Rows in a type of affine groups such as INT4_G64.

    `codes` are uint8 [n, bytes], bit by bit; `scales` and `minima` are fp16, or f32 [n, columns / group].
    """
    both = np.stack((scales, minima), axis=-1).view(np.uint8).reshape(scales.size, -1)
    return bytearray(np.concatenate((both, codes.reshape(scales.size, -1)), axis=1).data)


def zero_point_blocks(codes: np.ndarray, bits: int, scales: np.ndarray, zeros: np.ndarray) -> bytearray:
    """Rows in a type of groups with a zero point such as INT4_ZP_G128.

    `codes` are uint8 [n, columns] of 4 or 8 bits; `scales`, fp16 or f32, and `zeros`, integers, are [n, columns /
    group].
    """
    parts = (
        np.ascontiguousarray(scales).reshape(-1, 1).view(np.uint8),
        zeros.astype(np.uint8).reshape(-1, 1),
        packed(codes, bits).reshape(scales.size, -1),
    )
    return bytearray(np.concatenate(parts, axis=1).data)


def symmetric_blocks(levels: np.ndarray, bits: int, scales: np.ndarray) -> bytearray:
    """Rows in a type of symmetric groups such as INT4_SYM_F32_G32.

    `levels` are signed integers of 4 or 8 bits [n, columns]; `scales` are f32 [n, columns / group].
    """
    codes = levels.astype(np.uint8) + np.uint8(1 << (bits - 1))  # modulo 256
    parts = np.ascontiguousarray(scales, "<f4").reshape(-1, 1).view(np.uint8), packed(codes, bits)
    return bytearray(np.concatenate((parts[0], parts[1].reshape(scales.size, -1)), axis=1).data)


def fp16_exponent(numbers: np.ndarray) -> int | None:
    """The e for which all numbers (f32) times 2^e are exact in fp16, 0 if possible; None where there is none."""
    largest = float(np.abs(numbers).max(initial=0.0))
    for exponent in (0, 15 - int(np.frexp(largest)[1]) if largest else 0):
        scaled = np.ldexp(numbers.astype(np.float64), exponent)
        with np.errstate(over="ignore"):
            if np.array_equal(scaled.astype(np.float16), scaled):
                return exponent
    return None
