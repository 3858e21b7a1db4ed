// Choice of the instruction set, and the C ABI on top of the chosen table.
#include "runtime/cpu_features.h"
#include "isa.h"

#include <atomic>
#include <string.h>

namespace {

bool runs_here(const lr_kernels* k) {
#if defined(LR_AMX_MODEL)
  if (!strcmp(k->isa, "amx")) return true;  // tests build it with the vectors of the machine they are on
#endif
  return cpu_runs(k->isa);
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

const char* const kOfEveryBuild[] = {  // for this kind of processor, weakest first
    "generic",
#if defined(__x86_64__) || defined(_M_X64)
    "avx2", "avxvnni", "avx512", "amx",
#elif defined(__aarch64__)
    "neon", "i8mm",
#endif
};

struct Machine {
  const lr_kernels* best = kAll[0];
  char names[128] = "", all_names[128] = "";
  Machine() {
    for (const lr_kernels* k : kAll) {
      if (!runs_here(k)) continue;
      best = k;
      append(names, k->isa);
    }
    for (const char* isa : kOfEveryBuild)
      if (cpu_runs(isa)) append(all_names, isa);
  }
  static void append(char* names, const char* isa) {
    if (names[0]) strcat(names, " ");
    strcat(names, isa);
  }
};

const Machine kMachine;
std::atomic<const lr_kernels*> g_kernels{kMachine.best};

}  // namespace

const lr_kernels* lr_current_kernels(void) { return g_kernels.load(); }

int lr_version(void) { return LR_ABI_VERSION; }
int lr_numerics_version(void) { return LR_NUMERICS_VERSION; }
const char* lr_isas(void) { return kMachine.names; }
const char* lr_machine_isas(void) { return kMachine.all_names; }
const char* lr_isa(void) { return g_kernels.load()->isa; }
const char* lr_arithmetic(void) { return g_kernels.load()->arithmetic; }

int lr_use_isa(const char* name) {
  for (const lr_kernels* k : kAll) {
    if (strcmp(k->isa, name) == 0 && runs_here(k)) {
      g_kernels.store(k);
      return LR_OK;
    }
  }
  return LR_UNSUPPORTED;
}
