// Prints which of the features named by its arguments the library finds.
#include <stdio.h>

#include "runtime/cpu_features.h"

int main(int argc, char** argv) {
  for (int i = 1; i < argc; i++)
    if (cpu_has(argv[i])) puts(argv[i]);
  return 0;
}
