// One table of kernels an instruction set. Units define everything else as static: an inline function shared between
// units could leave the linker with the copy compiled for AVX-512 on a machine without it.
#pragma once
#include "localrun_cpu.h"

struct lr_kernels {
  const char* isa;
  void (*logits_stats)(const float* x, int64_t n, float inv_temp, lr_logits_stats_t* out);
};

extern const lr_kernels lr_kernels_generic;
#if defined(__x86_64__) || defined(_M_X64)
extern const lr_kernels lr_kernels_avx2;
extern const lr_kernels lr_kernels_avxvnni;
extern const lr_kernels lr_kernels_avx512;
#elif defined(__aarch64__) || defined(_M_ARM64)
extern const lr_kernels lr_kernels_neon;
#endif
