"""Devices that run the kernels of GPUs on the processor: how they are proven where there is no GPU.

`cuda` and `metal` each have `emulated_device`, which backends ask for where LOCALRUN_EMULATE_CUDA=1 or
LOCALRUN_EMULATE_MPS=1 is set in a checkout.
"""
