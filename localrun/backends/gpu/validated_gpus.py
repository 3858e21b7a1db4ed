"""GPUs that the kernels were measured on, by the reports in benchmarks/results that hold for the kernels as they are (a
test compares)."""

MEASURED: tuple[str, ...] = ()  # names, as `python -m benchmarks.gpu_check` prints them


def proven(gpu: str) -> str:
    """Evidence for the kernels on a GPU of that name, in a few words."""
    if gpu in MEASURED:
        return "kernels measured on this GPU"
    return "kernels proven on an emulator, never measured on this GPU: benchmarks.gpu_check makes a report"
