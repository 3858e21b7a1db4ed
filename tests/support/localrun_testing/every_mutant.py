"""All kernels broken on purpose, of both platforms."""

from localrun_testing.elementwise_mutants import MUTANTS as ELEMENTWISE
from localrun_testing.kernel_mutants import MUTANTS as CUDA
from localrun_testing.metal_attention_mutants import MUTANTS as METAL_ATTENTION
from localrun_testing.metal_linear_mutants import MUTANTS as METAL_LINEAR
from localrun_testing.mixture_mutants import MUTANTS as MIXTURES
from localrun_testing.recurrent_mutants import MUTANTS as RECURRENT

MUTANTS = (*CUDA, *ELEMENTWISE, *MIXTURES, *METAL_LINEAR, *METAL_ATTENTION, *RECURRENT)
