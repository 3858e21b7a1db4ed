// In the place of NVIDIA's driver, libcuda.so.1: one device, which computes nothing. It copies memory, keeps graphs, and
// writes down what it is told (stub_journal), as strict about streams that are captured as the driver is.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace {
enum { kFine = 0, kInvalidValue = 1, kUnsupported = 900, kInvalidated = 901, kImplicit = 906 };
typedef void* Stream;

struct Config {  // CUlaunchConfig
  unsigned grid[3], block[3], shared;
  Stream stream;
  void* attributes;
  unsigned n_attributes;
};
struct Kernel {
  std::string name;
  std::vector<size_t> sizes;  // of its parameters
};
struct Node {
  std::string line;
  std::function<void()> run;
};
struct Graph {
  std::vector<Node> nodes;
  bool valid = true;
};

std::map<Stream, Graph*> capturing;
std::map<std::string, size_t> counts;
std::string journal, handed_out;
bool quiet = false;

double first_call = 0, last_call = 0;  // seconds of the thread that asks

void count(const char* what) {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  last_call = now.tv_sec + 1e-9 * now.tv_nsec;
  if (first_call == 0) first_call = last_call;
  counts[what]++;
}

void tell(const std::string& line) {
  if (!quiet) journal += line + "\n";
}

bool is_legacy(Stream stream) { return stream == nullptr || stream == (Stream)1; }

// Does something on a stream, or keeps it where that is being captured. The legacy stream waits for all others, which
// those that are captured cannot have.
int on_stream(Stream stream, Node node) {
  const auto found = capturing.find(stream);
  if (found != capturing.end()) {
    found->second->nodes.push_back(std::move(node));
    return kFine;
  }
  if (is_legacy(stream) && !capturing.empty()) {
    for (auto& each : capturing) each.second->valid = false;
    return kImplicit;
  }
  tell(node.line);
  node.run();
  return kFine;
}

// --- cubins: ELF files whose sections .nv.info.NAME tell the parameters of a kernel (records of kind 4, attribute 0x17)
template <typename T>
T at(const uint8_t* image, size_t offset) {
  T value;
  memcpy(&value, image + offset, sizeof value);
  return value;
}

std::vector<size_t> sizes_of(const uint8_t* image, const std::string& kernel) {
  std::vector<size_t> sizes;
  if (memcmp(image, "\x7f" "ELF", 4)) return sizes;
  const size_t table = at<uint64_t>(image, 0x28), n = at<uint16_t>(image, 0x3c), names = at<uint16_t>(image, 0x3e);
  const size_t strings = at<uint64_t>(image, table + 64 * names + 24);
  for (size_t i = 0; i < n; i++) {
    const size_t header = table + 64 * i;
    if (".nv.info." + kernel != (const char*)image + strings + at<uint32_t>(image, header)) continue;
    const size_t begin = at<uint64_t>(image, header + 24), end = begin + at<uint64_t>(image, header + 32);
    for (size_t record = begin; record < end;) {
      const int kind = image[record], attribute = image[record + 1];
      if (kind == 4 && attribute == 0x17) {
        const size_t index = at<uint16_t>(image, record + 8);
        sizes.resize(std::max(sizes.size(), index + 1));
        sizes[index] = at<uint32_t>(image, record + 12) >> 18;
      }
      record += 4 + (kind == 4 ? at<uint16_t>(image, record + 2) : 0);
    }
  }
  return sizes;
}

// --- the driver's functions
int fine() { return kFine; }
int zero(int* to) { return *to = 0; }
int one(int* to) { return *to = 1, kFine; }
int version(int* to) { return *to = 13000, kFine; }
int handle(void** to) { return *to = (void*)0x1234, kFine; }
int attribute(int* to, int which, int) {
  return *to = which == 75 ? 9 : which == 76 ? 0 : 64, kFine;  // 75, 76: compute capability
}
int load(void** library, const void* image) { return *library = (void*)image, kFine; }
int kernel(void** to, void* library, const char* name) {
  tell(std::string("kernel ") + name);
  *to = new Kernel{name, sizes_of((const uint8_t*)library, name)};
  return kFine;
}
int parameter(Kernel* of, size_t i, size_t* offset, size_t* size) {
  if (i >= of->sizes.size()) return kInvalidValue;
  *offset = 8 * i;
  if (size) *size = of->sizes[i];
  return kFine;
}
int allow(int which, int value, void*, int) {
  tell("attribute " + std::to_string(which) + " is " + std::to_string(value));
  return kFine;
}

std::string launch_line(const Config* c, const Kernel* kernel, void** arguments) {
  char text[256];
  snprintf(text, sizeof text, "launch %s grid %u %u %u block %u %u %u shared %u stream %zu:", kernel->name.c_str(),
           c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2], c->shared, (size_t)c->stream);
  std::string line = text;
  for (size_t i = 0; i < kernel->sizes.size(); i++) {
    snprintf(text, sizeof text, kernel->sizes[i] == 8 ? " %zu" : " 0x%08zx",
             kernel->sizes[i] == 8 ? *(size_t*)arguments[i] : (size_t) * (uint32_t*)arguments[i]);
    line += text;
  }
  return line;
}
int launch(const Config* c, Kernel* kernel, void** arguments, void**) {
  count("launch");
  return on_stream(c->stream, {quiet ? "" : launch_line(c, kernel, arguments), [] {}});
}
int copy(const char* what, void* to, const void* from, size_t n, Stream stream) {
  count(what);
  return on_stream(stream, {std::string(what) + " " + std::to_string(n), [=] { memcpy(to, from, n); }});
}
int upload(void* to, const void* from, size_t n, Stream stream) { return copy("upload", to, from, n, stream); }
int read(void* to, const void* from, size_t n, Stream stream) { return copy("read", to, from, n, stream); }
int wait(void*) {
  if (!capturing.empty()) return kUnsupported;
  count("wait");
  return kFine;
}
int event(void** to, unsigned) { return *to = new int, kFine; }
int record(void*, Stream stream) { return on_stream(stream, {"record", [] {}}); }

int begin_capture(Stream stream, int) {
  if (is_legacy(stream) || capturing.count(stream)) return kUnsupported;
  capturing[stream] = new Graph;
  return kFine;
}
int end_capture(Stream stream, Graph** to) {
  const auto found = capturing.find(stream);
  if (found == capturing.end()) return kInvalidValue;
  Graph* graph = found->second;
  capturing.erase(found);
  return *to = graph->valid ? graph : nullptr, graph->valid ? kFine : kInvalidated;
}
int is_capturing(Stream stream, int* to) { return *to = capturing.count(stream) ? 1 : 0, kFine; }
int capture_info(Stream stream, int* status, uint64_t* id, Graph** graph, void*, void*, size_t* n) {
  const auto found = capturing.find(stream);
  *status = found == capturing.end() ? 0 : 1;
  if (id) *id = *status;
  if (graph) *graph = *status ? found->second : nullptr;
  if (n) *n = 0;
  return kFine;
}
int instantiate(Graph** to, Graph* graph, void*) {
  tell("graph of " + std::to_string(graph->nodes.size()));
  return *to = new Graph(*graph), kFine;
}
int launch_graph(Graph* graph, Stream stream) {
  count("graph");
  counts["node"] += graph->nodes.size();
  return on_stream(stream, {"graph", [=] {
                     for (const auto& node : graph->nodes) tell(node.line), node.run();
                   }});
}
int destroy(Graph* graph) { return delete graph, kFine; }
int error_name(int error, const char** to) {
  *to = error == kUnsupported ? "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
        : error == kInvalidated ? "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"
        : error == kImplicit ? "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT" : "CUDA_ERROR";
  return kFine;
}
}  // namespace

// Since it was asked for last; valid until the next call.
extern "C" const char* stub_journal() {
  handed_out.swap(journal);
  journal.clear();
  return handed_out.c_str();
}
// How often there was a `launch` (those of graphs not counted), a `graph`, a `node` in one, an `upload`, a `read`, a `wait`.
extern "C" size_t stub_count(const char* what) { return counts[what]; }
// Seconds of the asking thread between the first and the last call of these since it was asked for last.
extern "C" double stub_seconds() {
  const double spent = last_call - first_call;
  first_call = last_call = 0;
  return spent;
}
extern "C" void stub_quiet(int is_quiet) { quiet = is_quiet; }

extern "C" int cuGetProcAddress_v2(const char* name, void** to, int, uint64_t, int* status) {
  static const std::map<std::string, void*> known = {
      {"cuGetProcAddress", (void*)cuGetProcAddress_v2},
      {"cuGetErrorName", (void*)error_name},
      {"cuGetErrorString", (void*)error_name},
      {"cuDriverGetVersion", (void*)version},
      {"cuDeviceGetCount", (void*)one},
      {"cuDeviceGet", (void*)zero},
      {"cuDeviceGetAttribute", (void*)attribute},
      {"cuDevicePrimaryCtxRetain", (void*)handle},
      {"cuCtxGetCurrent", (void*)handle},
      {"cuCtxGetDevice", (void*)zero},
      {"cuLibraryLoadData", (void*)load},
      {"cuLibraryGetKernel", (void*)kernel},
      {"cuKernelGetParamInfo", (void*)parameter},
      {"cuKernelSetAttribute", (void*)allow},
      {"cuLaunchKernelEx", (void*)launch},
      {"cuMemcpyHtoDAsync", (void*)upload},
      {"cuMemcpyDtoHAsync", (void*)read},
      {"cuEventCreate", (void*)event},
      {"cuEventRecord", (void*)record},
      {"cuEventSynchronize", (void*)wait},
      {"cuStreamSynchronize", (void*)wait},
      {"cuStreamBeginCapture", (void*)begin_capture},
      {"cuStreamEndCapture", (void*)end_capture},
      {"cuStreamIsCapturing", (void*)is_capturing},
      {"cuStreamGetCaptureInfo", (void*)capture_info},
      {"cuGraphInstantiateWithParams", (void*)instantiate},
      {"cuGraphLaunch", (void*)launch_graph},
      {"cuGraphExecDestroy", (void*)destroy},
      {"cuGraphDestroy", (void*)destroy},
  };
  const auto found = known.find(name);
  *to = found == known.end() ? (void*)fine : found->second;
  if (status) *status = 0;
  return kFine;
}
