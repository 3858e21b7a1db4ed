// A step of another process, on another machine. stdin: numbers of memory regions, pointers and results, the program, the
// step, its largest number of rows; each region's address and size; where each pointer stands; each result's address and
// size; then the bytes of all regions. Regions are put elsewhere here, and pointers follow. stdout: the bytes of the results.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

#include "localrun_cpu.h"

namespace {

struct Region {
  uint64_t there, size;
  char* here;
};

template <class T> std::vector<T> read_numbers(size_t n) {
  std::vector<T> numbers(n);
  if (n && fread(numbers.data(), sizeof(T), n, stdin) != n) exit(2);
  return numbers;
}

std::vector<Region> read_regions(size_t n) {
  const std::vector<uint64_t> numbers = read_numbers<uint64_t>(2 * n);
  std::vector<Region> regions;
  for (size_t i = 0; i < n; i++) regions.push_back({numbers[2 * i], numbers[2 * i + 1], nullptr});
  return regions;
}

// Where what was at an address there is here.
char* here(const std::vector<Region>& regions, uint64_t address) {
  for (const Region& region : regions)
    if (address >= region.there && address < region.there + region.size) return region.here + (address - region.there);
  exit(3);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || lr_use_isa(argv[1]) != LR_OK) return 4;
  const std::vector<uint64_t> header = read_numbers<uint64_t>(6);
  std::vector<Region> regions = read_regions(header[0]);
  const std::vector<uint64_t> pointers = read_numbers<uint64_t>(header[1]);
  const std::vector<Region> results = read_regions(header[2]);
  for (Region& region : regions) {
    region.here = (char*)aligned_alloc(64, (region.size + 63) / 64 * 64);
    if (fread(region.here, 1, region.size, stdin) != region.size) return 5;
  }
  for (const uint64_t pointer : pointers) {
    uint64_t* place = (uint64_t*)here(regions, pointer);
    *place = (uint64_t)here(regions, *place);
  }
  lr_threads* threads = lr_threads_create(2);
  lr_executor* executor;
  if (lr_program_create((const lr_program*)here(regions, header[3]), threads, (int32_t)header[5], &executor) != LR_OK) return 6;
  if (lr_program_run(executor, (const lr_step*)here(regions, header[4])) != LR_OK) return 7;
  for (const Region& result : results) fwrite(here(regions, result.there), 1, result.size, stdout);
  return 0;
}
