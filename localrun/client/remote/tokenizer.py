"""Prompts counted by a tokenizer on this disk, for servers that count none before they are sent."""

from dataclasses import replace
from functools import cached_property
from pathlib import Path

from localrun.base.errors import LocalrunError
from localrun.base.request import Request
from localrun.base.views import PromptView
from localrun.client.remote.endpoint import Endpoint, place_of
from localrun.formats.detect import open_model_file
from localrun.formats.gguf_names import is_gguf
from localrun.hub.resolve import resolve, resolve_listed
from localrun.text.load_text import load_folder_text, load_text
from localrun.text.model_text import ModelText

_FILE = "tokenizer.json"


class DiskTokenizer:
    """The tokenizer that a user named for a server, else that of a model of the same name, or of the folder that a
    server on this machine has as the name of its model. It is read when it is first asked for.

    The server's own count of the first answer afterwards is compared: where it differs, nothing is counted any more.
    """

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self._endpoint, self._model = endpoint, model
        self._is_compared = self._is_wrong = False

    def count(self, request: Request, pieces: bool) -> PromptView | None:
        """The prompt that a request becomes; None without a tokenizer, and for what its template does not take."""
        if self._is_wrong or self._text is None:
            return None
        try:
            ids = self._text.prepare(request).ids
        except LocalrunError:
            return None
        if not pieces:
            return PromptView(len(ids), None)
        tokenizer = self._text.tokenizer
        shown = tuple(map(tokenizer.piece_text, ids))
        return PromptView(len(ids), None, tuple(ids), shown, tokenizer.decode(ids, special=True))

    def compare(self, request: Request, n_prompt: int | None) -> str:
        """A note where the server counts a prompt differently; empty where not, and where nothing was counted here."""
        if self._is_compared or n_prompt is None or "_text" not in self.__dict__:
            return ""
        if (ours := self.count(replace(request, known_ids=()), pieces=False)) is None:
            return ""
        self._is_compared, self._is_wrong = True, ours.n_tokens != n_prompt
        if not self._is_wrong:
            return ""
        return f"the tokenizer here counts {ours.n_tokens:,} tokens where the server counts {n_prompt:,}: left out"

    @cached_property
    def _text(self) -> ModelText | None:
        try:
            return text_at(self._path())
        except LocalrunError:
            return None

    def _path(self) -> Path:
        if self._endpoint.tokenizer:
            return resolve(self._endpoint.tokenizer).path
        folder = Path(self._model)
        if place_of(self._endpoint).is_here and folder.is_absolute() and (folder / _FILE).is_file():
            return folder
        return resolve_listed(self._model).path


def text_at(path: Path) -> ModelText:
    """Tokenizer and template of a model, or of a folder that has no weights. Raises LocalrunError."""
    folder = path if path.is_dir() else path.parent
    if not is_gguf(path.name) and (folder / _FILE).is_file():
        return load_folder_text(folder)
    return load_text(open_model_file(path))
