"""A fake hub in a process of its own: `python -m localrun_testing.hub_process` tells its address and obeys.

It serves the built-in model, named as somebody else's, in two precisions, and under the name of every model of the
catalogue, so that the recommended one is there on any machine. Each line of standard input is a command:
`rate N` (bytes a second of each connection, 0 without a limit), `cut` (every connection for a file breaks), `mend`,
`sent` (tells how many bytes of the files were sent); the end of input ends it.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import gguf
import numpy as np

from localrun.hub.catalogue import read_catalogue
from localrun_testing.fake_hub import FakeHub, FakeRepo

REPO = "pocket-labs/pocket-chat-GGUF"


def model_files(source: Path) -> dict[str, bytes]:
    """A GGUF as it is, and the same with its matrices in F16."""
    with TemporaryDirectory() as folder:
        half = Path(folder) / "half.gguf"
        write_half(source, half)
        return {"pocket-chat-Q8_0.gguf": source.read_bytes(), "pocket-chat-F16.gguf": half.read_bytes()}


def write_half(source: Path, target: Path) -> None:
    """Dequantise into F16; what is F32 stays so."""
    reader = gguf.GGUFReader(source)
    arch = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(target, arch)
    for name, field in reader.fields.items():
        if not name.startswith("GGUF.") and name not in ("general.architecture", "general.file_type"):
            inner = field.types[-1] if len(field.types) > 1 else None
            writer.add_key_value(name, field.contents(), field.types[0], inner)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    for tensor in reader.tensors:
        full = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        is_full = tensor.tensor_type == gguf.GGMLQuantizationType.F32
        writer.add_tensor(tensor.name, full if is_full else full.astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def recommended(file: bytes) -> dict[str, FakeRepo]:
    """Every repository of the catalogue, with one precision."""
    entries = {name: entry["gguf"] for name, entry in read_catalogue().items() if "gguf" in entry}
    return {repo: FakeRepo({f"{name}-Q4_K_M.gguf": file}) for name, repo in entries.items()}


def serve(source: Path) -> None:
    files = model_files(source)
    about = {"architecture": "llama", "total": 6_300_000, "context_length": 2048}
    with FakeHub({REPO: FakeRepo(files, gguf=about), **recommended(files["pocket-chat-F16.gguf"])}) as hub:
        print(hub.url, flush=True)
        for line in sys.stdin:
            match line.split():
                case ["rate", number]:
                    hub.bytes_per_second = float(number) or None
                case ["cut"]:
                    hub.is_unplugged = True
                case ["mend"]:
                    hub.is_unplugged = False
                case ["sent"]:
                    print(sum(hub.sent(name) for name in files), flush=True)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
