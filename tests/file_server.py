"""An HTTP server in a thread that can misbehave in the ways real ones do."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class FileServer:
    """Files to serve, how to serve them, and what was asked for and sent."""

    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    heeds_if_range: bool = True
    etag: str = '"one"'
    modified: str = ""
    content_type: str = "application/octet-stream"
    cuts: list[int] = field(default_factory=list)  # bytes after which a connection ends, each once
    statuses: list[int] = field(default_factory=list)  # answers to the next requests
    redirects: dict[str, str] = field(default_factory=dict)
    hold: threading.Event | None = None  # keeps a cut connection open until it is set
    requests: list[tuple[str, str, str]] = field(default_factory=list)  # path, Range, If-Range
    sent: int = 0
    url: str = ""

    def __enter__(self) -> FileServer:
        handler = type("Handler", (_Handler,), {"served": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.hold:
            self.hold.set()
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    served: FileServer

    def do_GET(self):
        server = self.served
        asked, condition = self.headers.get("Range", ""), self.headers.get("If-Range", "")
        server.requests.append((self.path, asked, condition))
        if self.path in server.redirects:
            return self.answer(302, {"Location": server.redirects[self.path]})
        status = server.statuses.pop(0) if server.statuses else 200
        content = server.files.get(self.path)
        if status != 200 or content is None:
            return self.answer(404 if status == 200 else status, {})
        start = 0
        same = not server.heeds_if_range or condition in ("", server.etag, server.modified)
        if asked and server.ranges and same:
            start = int(re.fullmatch(r"bytes=(\d+)-", asked)[1])
            if start >= len(content):
                return self.answer(416, {"Content-Range": f"bytes */{len(content)}"})
        headers = {"Content-Length": str(len(content) - start), "Content-Type": server.content_type}
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        if server.etag:
            headers["ETag"] = server.etag
        if server.modified:
            headers["Last-Modified"] = server.modified
        self.answer(206 if start else 200, headers)
        cut = server.cuts.pop(0) if server.cuts else len(content)
        body = content[start : start + cut]
        server.sent += len(body)
        self.wfile.write(body)
        if start + len(body) < len(content) and server.hold:
            self.wfile.flush()
            server.hold.wait()
        return None

    def answer(self, status, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_):
        pass
