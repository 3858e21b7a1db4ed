"""How results are rounded, by number: what is kept on disk was computed with the rounding of one version.

The arithmetic of an instruction set counts by its name (`NativeLibrary.arithmetic`), so others keep their blocks.
"""

NUMERICS_VERSION = 5  # LR_NUMERICS_VERSION of kernels/cpu/localrun_cpu.h
