#include "runtime/cpu_features.h"

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) || defined(_M_X64)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace {

// Registers that the system has to save for a thread, as bits of XCR0. Darwin saves those of AVX-512 once they are used,
// and shows them only then.
enum : uint64_t { AVX = 0x6, TILES = 0x60000 };
#if defined(__APPLE__)
const uint64_t AVX512 = AVX;
#else
const uint64_t AVX512 = AVX | 0xe0;
#endif

enum { EAX, EBX, ECX, EDX };

const struct {
  const char* name;
  uint32_t leaf, subleaf;  // of cpuid
  int word, bit;
  uint64_t saved;
} kFeatures[] = {
    {"fma", 1, 0, ECX, 12, AVX},          {"f16c", 1, 0, ECX, 29, AVX},
    {"avx2", 7, 0, EBX, 5, AVX},          {"avx_vnni", 7, 1, EAX, 4, AVX},
    {"avx512f", 7, 0, EBX, 16, AVX512},   {"avx512dq", 7, 0, EBX, 17, AVX512},
    {"avx512bw", 7, 0, EBX, 30, AVX512},  {"avx512vl", 7, 0, EBX, 31, AVX512},
    {"avx512_vnni", 7, 0, ECX, 11, AVX512}, {"avx512_bf16", 7, 1, EAX, 5, AVX512},
    {"avx512vbmi", 7, 0, ECX, 1, AVX512},
    {"amx_bf16", 7, 0, EDX, 22, TILES},   {"amx_tile", 7, 0, EDX, 24, TILES},
    {"amx_int8", 7, 0, EDX, 25, TILES},
};

uint64_t saved_registers() {
  uint32_t word[4] = {}, low, high;
  const uint32_t OSXSAVE = 1u << 27;
  if (!__get_cpuid(1, &word[EAX], &word[EBX], &word[ECX], &word[EDX]) || !(word[ECX] & OSXSAVE)) return 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

bool has_all(const char* const* features) {
  while (*features && cpu_has(*features)) features++;
  return !*features;
}

// Linux lets a process use the tile registers once it has asked; all its threads may then.
bool may_use_tiles() {
#if defined(__linux__)
  const int ARCH_REQ_XCOMP_PERM = 0x1023, XTILEDATA = 18;
  return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XTILEDATA) == 0;
#else
  return false;
#endif
}

}  // namespace

bool cpu_has(const char* feature) {
  for (const auto& f : kFeatures) {
    uint32_t word[4] = {};
    if (strcmp(f.name, feature)) continue;
    if (!__get_cpuid_count(f.leaf, f.subleaf, &word[EAX], &word[EBX], &word[ECX], &word[EDX])) return false;
    return (word[f.word] >> f.bit & 1) && (saved_registers() & f.saved) == f.saved;
  }
  return false;
}

bool cpu_runs(const char* isa) {
  static const char* const avx2[] = {"avx2", "fma", "f16c", nullptr};
  static const char* const avx512[] = {"avx512f",  "avx512bw",    "avx512vl",
                                       "avx512dq", "avx512_vnni", "avx512_bf16", nullptr};
  static const char* const amx[] = {"avx512vbmi", "amx_tile", "amx_int8", "amx_bf16", nullptr};
  if (!strcmp(isa, "generic")) return true;
  if (!strcmp(isa, "avx2")) return has_all(avx2);
  if (!strcmp(isa, "avxvnni")) return has_all(avx2) && cpu_has("avx_vnni");
  if (!strcmp(isa, "avx512")) return has_all(avx2) && has_all(avx512);
  return !strcmp(isa, "amx") && has_all(avx2) && has_all(avx512) && has_all(amx) && may_use_tiles();
}

bool cpu_streams_past_caches() {
  uint32_t most, vendor[3];
  if (!__get_cpuid(0, &most, &vendor[0], &vendor[2], &vendor[1])) return false;
  return !memcmp(vendor, "AuthenticAMD", sizeof vendor);
}

#else

bool cpu_has(const char*) { return false; }
bool cpu_streams_past_caches() { return false; }

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#if !defined(HWCAP2_I8MM)  // headers of older systems
#define HWCAP2_I8MM (1 << 13)
#endif

bool cpu_runs(const char* isa) {
  const unsigned long has = getauxval(AT_HWCAP);
  if (!strcmp(isa, "neon")) return (has & HWCAP_ASIMDDP) && (has & HWCAP_ASIMDHP);
  if (!strcmp(isa, "i8mm")) return getauxval(AT_HWCAP2) & HWCAP2_I8MM;
  return true;
}
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>

bool cpu_runs(const char* isa) {  // every Apple arm64 has dot products and half floats
  int found = 0;
  size_t size = sizeof found;
  if (strcmp(isa, "i8mm")) return true;
  return sysctlbyname("hw.optional.arm.FEAT_I8MM", &found, &size, nullptr, 0) == 0 && found;
}
#elif defined(__aarch64__) && defined(_WIN32)
#include <windows.h>

bool cpu_runs(const char* isa) {  // by numbers that older headers have no names for
  const DWORD DOT_PRODUCTS = 43, I8MM = 66;
  if (!strcmp(isa, "neon")) return IsProcessorFeaturePresent(DOT_PRODUCTS);  // whoever has them has half floats
  if (!strcmp(isa, "i8mm")) return IsProcessorFeaturePresent(DOT_PRODUCTS) && IsProcessorFeaturePresent(I8MM);
  return true;
}
#else
bool cpu_runs(const char* isa) { return !strcmp(isa, "generic"); }  // nobody to ask
#endif
#endif
