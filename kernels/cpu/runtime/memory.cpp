// Address space for pools and arenas: reserved at full size once, so that addresses never change, and committed as it
// is used.
#include "localrun_cpu.h"

#if defined(_WIN32)
#include <windows.h>

void* lr_reserve(int64_t bytes) {
  return bytes > 0 ? VirtualAlloc(nullptr, (SIZE_T)bytes, MEM_RESERVE, PAGE_NOACCESS) : nullptr;
}
int lr_commit(void* start, int64_t bytes) {
  if (!start || bytes <= 0) return LR_BAD_ARGUMENT;
  return VirtualAlloc(start, (SIZE_T)bytes, MEM_COMMIT, PAGE_READWRITE) ? LR_OK : LR_NO_MEMORY;
}
int lr_release(void* start, int64_t) { return start && VirtualFree(start, 0, MEM_RELEASE) ? LR_OK : LR_BAD_ARGUMENT; }
void lr_will_read(const void*, int64_t) {}
void lr_populate(const void*, int64_t) {}
#else
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

// As much as a kernel reads ahead at once of what it is told, whatever it is told.
static const int64_t ADVICE_BYTES = 128 << 10;

#if defined(__linux__)
static const int LR_MADV_POPULATE_READ = 22;  // older headers do not name it
#endif

// What is large begins at a large page, where the system has them: streaming through weights then seldom waits for the
// address of a page.
static const size_t LARGE_PAGE = (size_t)2 << 20;

void* lr_reserve(int64_t bytes) {
  if (bytes <= 0) return nullptr;
  const size_t n = (size_t)bytes, spare = n >= LARGE_PAGE ? LARGE_PAGE : 0;
  char* p = (char*)mmap(nullptr, n + spare, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return nullptr;
#if defined(MADV_HUGEPAGE)
  if (spare) madvise(p, n + spare, MADV_HUGEPAGE);  // a wish
#endif
  const size_t before = spare ? (LARGE_PAGE - (uintptr_t)p % LARGE_PAGE) % LARGE_PAGE : 0;
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), end = (before + n + page - 1) / page * page;
  if (before) munmap(p, before);
  if (end < n + spare) munmap(p + end, n + spare - end);
  return p + before;
}

int lr_commit(void* start, int64_t bytes) {
  if (!start || bytes <= 0) return LR_BAD_ARGUMENT;
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)start / page * page;
  const uintptr_t last = ((uintptr_t)start + (uintptr_t)bytes + page - 1) / page * page;
  return mprotect((void*)first, last - first, PROT_READ | PROT_WRITE) == 0 ? LR_OK : LR_NO_MEMORY;
}

int lr_release(void* start, int64_t bytes) {
  return start && bytes > 0 && munmap(start, (size_t)bytes) == 0 ? LR_OK : LR_BAD_ARGUMENT;
}

// Whether all pages of a mapped file of ours are in memory. To ask is a small part of what it takes to advise; the system
// tells of nobody else's files, and says yes.
static bool are_there([[maybe_unused]] uintptr_t first, [[maybe_unused]] uintptr_t n_pages) {
#if defined(__linux__)
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  unsigned char there[256];
  for (uintptr_t done = 0; done < n_pages; done += sizeof there) {
    const uintptr_t n = n_pages - done < sizeof there ? n_pages - done : sizeof there;
    if (mincore((void*)(first + done * page), n * page, there)) return false;
    for (uintptr_t i = 0; i < n; i++)
      if (!(there[i] & 1)) return false;
  }
  return true;
#else
  return false;
#endif
}

void lr_will_read(const void* start, int64_t bytes) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), end = (uintptr_t)start + (uintptr_t)bytes;
  const uintptr_t first = (uintptr_t)start / page * page;
  if (are_there(first, (end - first + page - 1) / page)) return;
  for (uintptr_t at = first; at < end; at += ADVICE_BYTES) {
    const uintptr_t n = end - at < (uintptr_t)ADVICE_BYTES ? end - at : (uintptr_t)ADVICE_BYTES;
    madvise((void*)at, n, MADV_WILLNEED);  // a wish
  }
}

void lr_populate(const void* start, int64_t bytes) {
#if defined(__linux__)
  madvise((void*)start, (size_t)bytes, MADV_HUGEPAGE);
  if (madvise((void*)start, (size_t)bytes, LR_MADV_POPULATE_READ) == 0) return;  // since Linux 5.14
#endif
  lr_will_read(start, bytes);
}
#endif
