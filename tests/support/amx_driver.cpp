// A product by AMX, of its model or of the processor. With a name, a mistake that the processor faults on; else stdin {tokens,
// bytes of a step, columns}, sums, activations and weights, each as a register holds it; stdout the sums after it.
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define LR_HAS_AMX 1
#define LR_INLINE static inline
#include "simd/amx.inc"

#if !defined(LR_AMX_MODEL)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace {

alignas(64) uint8_t memory[3][16][64];

AmxTileConfig shapes(int tokens, int step, int columns) {
  AmxTileConfig to;
  to.set(0, tokens, 4 * columns);
  to.set(4, tokens, step);
  to.set(6, step / 4, 4 * columns);
  return to;
}

void multiply() {
  amx_load<0>(memory[0], 64);
  amx_load<4>(memory[1], 64);
  amx_load<6>(memory[2], 64);
  amx_dot_bf16<0, 4, 6>();
  amx_store<0>(memory[0], 64);
}

#if defined(LR_AMX_MODEL)  // an assembler refuses some
void mistake(const char* name) {
  const auto is = [&](const char* other) { return !strcmp(name, other); };
  AmxTileConfig to = shapes(5, 32, 16);
  if (is("too many rows")) to.set(0, 17, 64);
  if (is("too many bytes")) to.set(0, 5, 68);
  if (is("no rows")) to.set(0, 0, 64);
  if (is("no bytes")) to.set(0, 5, 0);
  if (is("other tokens")) to.set(4, 6, 32);
  if (is("other steps")) to.set(6, 7, 64);
  if (is("other columns")) to.set(6, 8, 60);
  if (is("broken group")) to.set(4, 5, 30);
  if (is("reserved")) to.reserved[3] = 1;
  if (is("palette")) to.palette = 2;
  if (!is("no shapes")) amx_configure(to);
  if (is("released")) amx_release();
  if (is("no shape")) amx_zero<1>();
  if (is("twice")) amx_dot_bf16<0, 0, 6>();
  multiply();
}
#endif

}  // namespace

int main([[maybe_unused]] int argc, [[maybe_unused]] char** argv) {
#if defined(LR_AMX_MODEL)
  if (argc == 2) return mistake(argv[1]), 0;
#else
  if (syscall(SYS_arch_prctl, 0x1023, 18)) return 3;  // ARCH_REQ_XCOMP_PERM: the system is asked for the registers
#endif
  int32_t header[3];
  if (fread(header, sizeof header, 1, stdin) != 1 || fread(memory, sizeof memory, 1, stdin) != 1) return 2;
  amx_configure(shapes(header[0], header[1], header[2]));
  multiply();
  fwrite(memory[0], sizeof memory[0], 1, stdout);
  return 0;
}
