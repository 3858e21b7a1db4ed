// What the processor offers and the system lets programs use. Asked of the processor itself: the names that compilers
// have for it differ from version to version.
#pragma once

// Whether this machine runs the unit of that name.
bool cpu_runs(const char* isa);

// Whether it has a feature of x86, by its name in /proc/cpuinfo; of those that a unit needs.
bool cpu_has(const char* feature);
