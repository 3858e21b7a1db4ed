"""Starting the library's threads, near the memory they will read. Torch-free."""

from localrun.backends.cpu.bindings import CpuCalls
from localrun.base.processors import memory_nodes


def start_threads(calls: CpuCalls, n_threads: int) -> int:
    """A pool of the library. Where main memory has several parts (NUMA), a thread keeps to the processors of one.

    Threads are spread as processors are, and in the same way each time: what thread 3 of one pool has touched first is
    near thread 3 of another. The caller is thread 0 and stays where it is.
    """
    threads = calls.threads_create(n_threads)
    nodes = memory_nodes()
    if len(nodes) > 1:
        node_of = [node for node in nodes for _ in node]
        for thread in range(1, n_threads):
            calls.threads_keep_to(threads, thread, node_of[thread * len(node_of) // n_threads])
    return threads
