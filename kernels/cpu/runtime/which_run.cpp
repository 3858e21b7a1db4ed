// Prints which of the instruction sets named by its arguments this processor runs. For CMake, which asks before it builds.
#include <stdio.h>

#include "runtime/cpu_features.h"

int main(int argc, char** argv) {
  for (int i = 1; i < argc; i++)
    if (cpu_runs(argv[i])) puts(argv[i]);
  return 0;
}
