"""The part of the fake hub that answers what is asked of it: models, their files and sizes, and trouble of its own."""

import json
import re
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from localrun_testing.fake_hub import LARGE, Seen, bomb
from localrun_testing.fake_hub_files import FileHandler


class HubHandler(FileHandler):
    """Every request, of the hub or of its store."""

    def do_GET(self) -> None:
        self.sent = 0
        place = self.hub.has_come()
        url = urlsplit(self.path)
        try:
            if self.server.role == "store":
                self.serve_store(unquote(url.path))
            else:
                self.serve_hub(unquote(url.path), parse_qs(url.query))
        except OSError:
            self.close_connection = True
        finally:
            token = self.headers.get("Authorization", "").removeprefix("Bearer ")
            asked = self.headers.get("Range", "")
            self.hub.has_gone(place, Seen(self.server.role, self.command, url.path, asked, token, self.sent))

    do_HEAD = do_POST = do_GET

    def serve_hub(self, path: str, query: dict[str, list[str]]) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if path.startswith("/api/") and self.trouble_of_api():
            return
        if path == "/api/models":
            self.answer(200, [self.summary(name) for name in self.found(query)])
            return
        if path == "/api/whoami-v2":
            self.serve_whoami()
            return
        api = re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/(revision|tree|paths-info)/([^/]+))?(?:/.*)?", path)
        file = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
        match = api or file
        if match is None:
            self.refuse(404, "", "Not found")
            return
        repo = self.hub.repos.get(match[1])
        if repo is None or (repo.private and not self.has_token()):
            self.refuse(401 if not self.headers.get("Authorization") else 404, "RepoNotFound", "Repository not found")
        elif match is file:
            self.serve_file(match[1], repo, match[2], match[3])
        elif match[3] and match[3] not in ("main", repo.commit):
            self.refuse(404, "RevisionNotFound", f"Invalid rev id: {match[3]}")
        elif match[2] == "tree":
            self.answer(200, [self.entry(name, content) for name, content in repo.files.items()])
        elif match[2] == "paths-info":
            wanted = parse_qs(body.decode()).get("paths") or json.loads(body or b"{}").get("paths", [])
            self.answer(200, [self.entry(name, repo.files[name]) for name in wanted if name in repo.files])
        else:
            blobs = query.get("blobs", [""])[0].lower() in ("true", "1")
            siblings = [self.sibling(name, content, blobs) for name, content in repo.files.items()]
            self.answer(200, {**self.summary(match[1]), "siblings": siblings})

    def serve_whoami(self) -> None:
        """Tell whose token came along, as logging in asks."""
        if self.has_token():
            token = {"displayName": "laptop", "role": "read"}
            self.answer(200, {"type": "user", "name": "me", "auth": {"type": "access_token", "accessToken": token}})
        else:
            self.refuse(401, "", "Invalid user token.")

    def trouble_of_api(self) -> bool:
        trouble = self.hub.next_trouble("api")
        match trouble.kind:
            case "":
                return False
            case "rate-limit":
                self.answer(429, {"error": "Too many requests"}, {"Retry-After": str(trouble.at or 77)})
            case "limits":  # whatever headers say so
                self.answer(429, {"error": "Too many requests"}, json.loads(trouble.to))
            case "crumbs":  # chunks of one byte
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                self.pour(b"1\r\nx\r\n" * 10_000, trouble.at)
            case "busy":
                self.answer(503, {"error": "busy"}, json.loads(trouble.to or "{}"))
            case "bad-token":
                self.answer(401, {"error": "Invalid credentials in Authorization header"})
            case "forbidden":
                self.answer(403, {"error": "Forbidden"})
            case "html":
                self.answer(200, b"<!doctype html><html>log in</html>", {"Content-Type": "text/html"})
            case "deep":
                self.answer(200, b"[" * 200_000)
            case "twice":
                self.answer(200, 2 * [self.summary(name) for name in self.hub.repos])
            case "list":
                self.answer(200, [1, None, "x", {"id": 7}])
            case "gzip":
                self.answer(200, bomb(), {"Content-Encoding": "gzip"})
            case "huge":
                self.send_response(200)
                self.end_headers()
                self.pour(b'{"a": "' + b"x" * (1 << 20), 64)
            case "drip":
                self.send_response(200)
                self.send_header("Content-Length", "1000000")
                self.end_headers()
                for _ in range(200):
                    self.wfile.write(b" ")
                    time.sleep(0.05)
            case "silent":
                time.sleep(trouble.at or 5)
            case "redirect":
                self.answer(302, b"", {"Location": trouble.to})
            case kind:
                raise AssertionError(kind)
        self.close_connection = True
        return True

    def pour(self, piece: bytes, times: int) -> None:
        for _ in range(times):
            self.wfile.write(piece)
            self.sent += len(piece)
        self.close_connection = True

    def found(self, query: dict[str, list[str]]) -> Iterator[str]:
        words = query.get("search", [""])[0].lower().split()
        filters = query.get("filter", [])
        names = [name for name, repo in self.hub.repos.items() if not repo.private]
        matching = [name for name in names if all(word in name.lower() for word in words)]
        limit = int(query.get("limit", ["1000"])[0])
        for name in matching[:limit]:
            if "gguf" not in filters or any(file.endswith(".gguf") for file in self.hub.repos[name].files):
                yield name

    def summary(self, name: str) -> dict[str, Any]:
        repo = self.hub.repos[name]
        row: dict[str, Any] = {"_id": name, "id": name, "modelId": name, "sha": repo.commit, "private": repo.private}
        row |= {"gated": "manual" if repo.gated else False, "downloads": 100 + len(name), "likes": 3}
        row |= {"tags": ["gguf", f"license:{repo.card.get('license', '')}"], "cardData": repo.card}
        row["lastModified"] = "2026-01-02T03:04:05.000Z"
        row["siblings"] = [{"rfilename": file} for file in repo.files]
        return {**row, "gguf": repo.gguf} if repo.gguf else row

    def sibling(self, name: str, content: bytes, blobs: bool) -> dict[str, Any]:
        row: dict[str, Any] = {"rfilename": name}
        if blobs:
            sha256, blob = self.hub.hashes(content)
            row |= {"size": len(content), "blobId": blob}
            if len(content) >= LARGE:
                row["lfs"] = {"sha256": sha256, "size": len(content), "pointerSize": 134}
        return row

    def entry(self, name: str, content: bytes) -> dict[str, Any]:
        sha256, blob = self.hub.hashes(content)
        row: dict[str, Any] = {"type": "file", "path": name, "size": len(content), "oid": blob}
        if len(content) >= LARGE:
            row["lfs"] = {"oid": sha256, "size": len(content), "pointerSize": 134}
        return row
