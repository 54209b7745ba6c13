"""The server: two paths, to be read by browsers of this machine alone.

It listens on the loopback address, and never on another. A page of somebody else in the same
browser could still send requests here. So it answers only where the request names this machine as
its host (a foreign name that was pointed to 127.0.0.1 does not), it only shows and changes nothing,
and nothing of it may be put into frames or read by pages from elsewhere.
"""

from __future__ import annotations

import errno
import json
import socket
import socketserver
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from fsdil_bench.errors import RequestError

from .live_board import LiveBoard

#: What is tried first, so that the address stays the same.
USUAL_PORT = 8377
HOSTS = {"127.0.0.1": "127.0.0.1", "localhost": "127.0.0.1", "::1": "::1", "[::1]": "::1"}

_NOTHING = "default-src 'none'; frame-ancestors 'none'"
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class BoardServer(ThreadingHTTPServer):
    """Serves a board to this machine; `serve_forever` as for every server of the standard library.

    With a `port` of None the usual one is tried first, and then any that is free, like port 0.
    """

    daemon_threads = True

    def __init__(self, board: LiveBoard, host: str = "127.0.0.1", port: int | None = None) -> None:
        if host not in HOSTS:
            raise RequestError(
                f"'{host}' is no address that only this machine can reach",
                "--host takes 127.0.0.1 or ::1. From elsewhere, use a tunnel: "
                "ssh -L 8377:127.0.0.1:8377 MACHINE.",
            )
        self.board = board
        address = HOSTS[host]
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        ports = (USUAL_PORT, 0) if port is None else (port,)
        for each in ports:
            try:
                super().__init__((address, each), _Handler)
                break
            except OSError as error:
                if each == ports[-1]:
                    raise _no_port(address, each, error) from None
        shown = f"[{address}]" if ":" in address else address
        self.url = f"http://{shown}:{self.server_port}/"
        names = ("127.0.0.1", "localhost", "[::1]")
        self.hosts = {f"{name}:{self.server_port}" for name in names}
        if self.server_port == 80:  # which browsers leave out
            self.hosts |= set(names)

    def server_bind(self) -> None:
        """Without asking for the name of this machine, which may take long."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "localhost", self.server_address[1]

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that leaves before it has read all is no news."""


def _no_port(address: str, port: int, error: OSError) -> RequestError:
    if error.errno == errno.EADDRINUSE:
        return RequestError(
            f"port {port} is in use", "Choose another with --port; --port 0 takes any that is free."
        )
    return RequestError(
        f"port {port} of {address} cannot be used: {error.strerror or error}",
        "Choose another with --port or --host.",
    )


class _Handler(BaseHTTPRequestHandler):
    server: BoardServer
    server_version, sys_version = "fsdil-bench", ""
    timeout = 20  # seconds that a browser may be silent within a request

    def do_GET(self) -> None:
        """Send the page, or what is going on."""
        if self.headers.get_all("Host", []) not in [[host] for host in self.server.hosts]:
            self._refuse(HTTPStatus.FORBIDDEN, f"This is {self.server.url}, and nothing else.")
            return
        path = self.path.partition("?")[0]
        if path == "/":
            page = self.server.board.page
            policy = f"{page.policy}; frame-ancestors 'none'"
            self._send(HTTPStatus.OK, page.content, "text/html; charset=utf-8", policy)
        elif path == "/state":
            content = json.dumps(self.server.board.state()).encode()
            self._send(HTTPStatus.OK, content, "application/json")
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "There is nothing here.")

    def do_HEAD(self) -> None:
        """The same without content."""
        self.do_GET()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what is no request to read something, with the same headers as all answers."""
        del message, explain
        if code == HTTPStatus.NOT_IMPLEMENTED:
            code = HTTPStatus.METHOD_NOT_ALLOWED
        self._refuse(HTTPStatus(code), "There is nothing but pages to read here.")

    def _refuse(self, status: HTTPStatus, text: str) -> None:
        self._send(status, f"{text}\n".encode(), "text/plain; charset=utf-8")

    def _send(self, status: HTTPStatus, content: bytes, kind: str, policy: str = _NOTHING) -> None:
        self.send_response(status)
        headers = {
            **_HEADERS,
            "Content-Type": kind,
            "Content-Length": str(len(content)),
            "Content-Security-Policy": policy,
        }
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            headers["Allow"] = "GET, HEAD"
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing: who looks at the page is no news."""
