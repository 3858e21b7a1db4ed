// What the processor offers and the system lets programs use. Asked of the processor itself: the names that compilers
// have for it differ from version to version.
#pragma once

// Whether this machine runs the unit of that name.
bool cpu_runs(const char* isa);

// Whether it has a feature of x86, by its name in /proc/cpuinfo; of those that a unit needs.
bool cpu_has(const char* feature);

// Whether weights that are read once are best prefetched past the caches. Measured: on AMD's Zen 5 decoding gained 3 to 7 %,
// on a Xeon with AMX it took 2.4 times as long.
bool cpu_streams_past_caches();
