"""Instructions of latent attention in kernels/cpu/instructions.h for ctypes, field by field. Torch-free."""

from ctypes import POINTER, Structure, c_int32, c_void_p

from localrun.backends.cpu.abi_values import Matrix, Value


class HeadLinear(Structure):
    _fields_ = (
        ("x", POINTER(Value)),
        ("order", c_void_p),
        ("a", POINTER(Value)),
        ("weight", POINTER(Matrix)),
        ("bias", c_void_p),
        ("scale", c_void_p),
        ("out", POINTER(Value)),
        ("n_heads", c_int32),
        ("reserved", c_int32),
    )


class LatentAppend(Structure):
    _fields_ = (
        ("q", POINTER(Value)),
        ("q_rope", POINTER(Value)),
        ("latent", POINTER(Value)),
        ("k_rope", POINTER(Value)),
        ("out", POINTER(Value)),
        ("layer", c_int32),
        ("rope", c_int32),
    )
