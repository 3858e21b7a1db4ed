// Choice of the instruction set, and the C ABI on top of the chosen table.
#include "isa.h"

#include <atomic>
#include <math.h>
#include <string.h>

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#if !defined(HWCAP2_I8MM)  // headers of older systems
#define HWCAP2_I8MM (1 << 13)
#endif
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#elif defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace {

#if defined(__x86_64__) && defined(__linux__)
// Linux lets a process use the tile registers once it has asked; all its threads may then.
bool may_use_tiles() {
  const int ARCH_REQ_XCOMP_PERM = 0x1023, XTILEDATA = 18;
  return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XTILEDATA) == 0;
}
#endif

bool runs_here(const lr_kernels* k) {
#if defined(__x86_64__) || defined(_M_X64)
  __builtin_cpu_init();
  const bool avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  if (!strcmp(k->isa, "avx2")) return avx2;
  if (!strcmp(k->isa, "avxvnni")) return avx2 && __builtin_cpu_supports("avxvnni");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bf16");
  if (!strcmp(k->isa, "avx512")) return avx512;
#if defined(LR_AMX_MODEL)
  if (!strcmp(k->isa, "amx")) return true;  // tests build it with the vectors of the machine they are on
#endif
#if defined(__linux__)
  if (!strcmp(k->isa, "amx"))
    return avx512 && __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-int8") &&
           __builtin_cpu_supports("amx-bf16") && may_use_tiles();
#endif
#elif defined(__aarch64__) && defined(__linux__)
  if (!strcmp(k->isa, "neon")) {
    const unsigned long hwcap = getauxval(AT_HWCAP);
    return (hwcap & HWCAP_ASIMDDP) && (hwcap & HWCAP_ASIMDHP);
  }
  if (!strcmp(k->isa, "i8mm")) return getauxval(AT_HWCAP2) & HWCAP2_I8MM;
#elif defined(__aarch64__) && defined(__APPLE__)
  if (!strcmp(k->isa, "i8mm")) {
    int found = 0;
    size_t size = sizeof found;
    return sysctlbyname("hw.optional.arm.FEAT_I8MM", &found, &size, nullptr, 0) == 0 && found;
  }
#elif defined(__aarch64__)
  if (!strcmp(k->isa, "i8mm")) return false;  // nobody to ask
#endif
  return k != nullptr;  // generic runs anywhere; every Apple arm64 has dot products and half floats
}

const lr_kernels* const kAll[] = {  // of this build, weakest first
#if defined(LR_WITH_generic)
    &lr_kernels_generic,
#endif
#if defined(LR_WITH_avx2)
    &lr_kernels_avx2,
#endif
#if defined(LR_WITH_avxvnni)
    &lr_kernels_avxvnni,
#endif
#if defined(LR_WITH_avx512)
    &lr_kernels_avx512,
#endif
#if defined(LR_WITH_amx)
    &lr_kernels_amx,
#endif
#if defined(LR_WITH_neon)
    &lr_kernels_neon,
#endif
#if defined(LR_WITH_i8mm)
    &lr_kernels_i8mm,
#endif
};

struct Machine {
  const lr_kernels* best = kAll[0];
  char names[128] = "";
  Machine() {
    for (const lr_kernels* k : kAll) {
      if (!runs_here(k)) continue;
      best = k;
      if (names[0]) strcat(names, " ");
      strcat(names, k->isa);
    }
  }
};

const Machine kMachine;
std::atomic<const lr_kernels*> g_kernels{kMachine.best};

}  // namespace

const lr_kernels* lr_current_kernels(void) { return g_kernels.load(); }

int lr_version(void) { return LR_ABI_VERSION; }
int lr_numerics_version(void) { return LR_NUMERICS_VERSION; }
const char* lr_isas(void) { return kMachine.names; }
const char* lr_isa(void) { return g_kernels.load()->isa; }

int lr_use_isa(const char* name) {
  for (const lr_kernels* k : kAll) {
    if (strcmp(k->isa, name) == 0 && runs_here(k)) {
      g_kernels.store(k);
      return LR_OK;
    }
  }
  return LR_UNSUPPORTED;
}

int lr_logits_stats(const float* x, int64_t n, float inv_temp, lr_logits_stats_t* out) {
  if (!x || !out || n < 1 || n > INT32_MAX || !(inv_temp > 0.0f) || !isfinite(inv_temp)) return LR_BAD_ARGUMENT;
  g_kernels.load()->logits_stats(x, n, inv_temp, out);
  return LR_OK;
}
