"""A model before its download: the header of a GGUF or a config.json, read by a few small requests."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from localrun.base.errors import HubError
from localrun.formats.checkpoints.beside import with_declared
from localrun.formats.checkpoints.registry import joined_tensors
from localrun.formats.files import Fetch, fetch_from
from localrun.formats.gguf import apart
from localrun.formats.gguf_header import read_header
from localrun.formats.gguf_names import is_gguf, is_weights
from localrun.formats.json_files import parse_json
from localrun.formats.metadata import Metadata
from localrun.formats.safetensors_header import read_header as read_safetensors_header
from localrun.formats.safetensors_shards import MAX_INDEX_BYTES, parse_index
from localrun.formats.source import TensorInfo
from localrun.hub.disk.hf_cache import find_stored
from localrun.hub.disk.model_files import SAFETENSORS_INDEX
from localrun.hub.header_model import HeaderModel, read_key_values
from localrun.hub.network.connection import MIRROR_HINT
from localrun.hub.network.http import Http
from localrun.hub.network.http_errors import check_status
from localrun.hub.network.url_origin import host_of
from localrun.hub.remote.api import file_url, patiently, read_small_file
from localrun.hub.remote.repo import RemoteFile, RemoteRepo
from localrun.hub.remote.variants import Variant

MAX_HEADER_BYTES = 64 << 20


class RangeReader:
    """Read bytes of one remote file by offset; a `Fetch` for the readers of headers."""

    def __init__(self, http: Http, repo: RemoteRepo, file: RemoteFile) -> None:
        self.fetched = 0
        self._http = http
        self._repo = repo
        self._file = file

    def __call__(self, offset: int, n_bytes: int) -> bytes:
        end = min(offset + n_bytes, self._file.size)
        ask = partial(self._get, offset, end)
        data = patiently(self._http, self._http.access.endpoint, ask) if end > offset else b""
        self.fetched += len(data)
        return data

    def _get(self, start: int, end: int) -> bytes:
        url = file_url(self._http, self._repo.name, self._repo.commit, self._file.path)
        with self._http.get(url, {"Range": f"bytes={start}-{end - 1}"}) as response:
            check_status(response, self._http.access, self._repo.name, self._file.path)
            asked = f"bytes {start}-{end - 1}/{self._file.size}"
            if response.status != 206 or response.headers.get("Content-Range") != asked:
                raise HubError(f"{host_of(response.url)} does not send parts of files", MIRROR_HINT)
            data = response.read(MAX_HEADER_BYTES)
        if len(data) != end - start:
            raise HubError(f"{host_of(response.url)} sent a different part of the file than requested", MIRROR_HINT)
        return data


def read_remote(http: Http, repo: RemoteRepo, variant: Variant) -> HeaderModel:
    """Read the key-values of a model on the hub. Raises HubError, and ModelFileError for a malformed file."""
    file = variant.files[0]
    path = Path(repo.name) / file.path
    if variant.format == "safetensors":
        return HeaderModel(path, "safetensors", *_read_config(http, repo))
    reader = RangeReader(http, repo, file)
    return HeaderModel(path, "gguf", read_key_values(reader, file.size, path), reader.fetched)


def read_headers(http: Http, repo: RemoteRepo, files: Sequence[RemoteFile]) -> HeaderModel:
    """Read all key-values and tensors of a model, from disk where they are there. Raises like read_remote."""
    weights = [file for file in files if is_weights(file.path)]
    path = Path(repo.name) / weights[0].path
    form = "gguf" if is_gguf(path.name) else "safetensors"
    values: Mapping[str, Any] = {}
    tensors: dict[str, TensorInfo] = {}
    fetches: dict[Path, Fetch] = {}
    for file in weights:
        stored = find_stored(http.access.cache, repo, file)
        fetch = RangeReader(http, repo, file) if stored is None else fetch_from(stored)
        place = Path(repo.name) / file.path
        fetches[place] = fetch
        if form == "gguf":
            header = read_header(fetch, file.size, place)
            values = values or header.metadata
        tensors |= header.tensors if form == "gguf" else read_safetensors_header(fetch, file.size, place)
    if form == "safetensors":
        _check_index(http, repo, {file.path for file in files})
    metadata = Metadata(values, path) if form == "gguf" else _read_config(http, repo)[0]
    found, _ = apart(tensors, metadata) if form == "gguf" else joined_tensors(tensors, metadata)
    return HeaderModel(path, form, metadata, 0, found, fetches)


def _check_index(http: Http, repo: RemoteRepo, names: set[str]) -> None:
    """Raise ModelFileError where the index of several files names one that is not among them."""
    if SAFETENSORS_INDEX not in names or "model.safetensors" in names:
        return
    raw = read_small_file(http, repo, SAFETENSORS_INDEX, MAX_INDEX_BYTES)
    index = parse_index(raw, Path(repo.name) / SAFETENSORS_INDEX)
    for name in sorted(index.shards - names):
        raise index.missing(name)


def _read_config(http: Http, repo: RemoteRepo) -> tuple[Metadata, int]:
    """Read config.json with the quantisation that another file declares, and return the bytes that took."""
    n_bytes = 0

    def read(name: str) -> dict[str, Any]:
        nonlocal n_bytes
        raw = read_small_file(http, repo, name)
        n_bytes += len(raw)
        return parse_json(raw, Path(repo.name) / name, "BAD_CONFIG")

    config = with_declared(read("config.json"), {file.path for file in repo.files}, read)
    return Metadata(config, Path(repo.name) / "config.json"), n_bytes
