"""Downloading one file over HTTP. A broken connection costs little; half a file never counts.

Bytes go to `<name>.part`, what the server said about the file (ETag, date, size) to
`<name>.part.json`. A later try asks for the rest, on condition that the file is still the same. A
server that does not know ranges, or has a different file now, sends all of it, and the part starts
again. Only a file of the right size and checksum gets its final name.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import ssl
import time
import urllib.request
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from http.client import HTTPException, HTTPMessage, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request

from rich.filesize import decimal

from fsdil_bench import __version__
from fsdil_bench.errors import FsdilError
from fsdil_bench.progress import Progress
from fsdil_bench.system.atomic_files import write_atomically

from .sources import Download

TRIES = 5
FIRST_PAUSE = 1.0  # seconds before the second try; it doubles with every further one
TIMEOUT = 60.0  # seconds without a byte
CHUNK = 1 << 16
PASSING = {408, 425, 429, 500, 502, 503, 504}  # answers that may be different in a while


class DownloadError(FsdilError):
    """A file cannot be fetched, or is not the one that was expected."""


class _BrokenError(Exception):
    """The connection failed in a way that may soon be over."""


@dataclass(frozen=True)
class Version:
    """What a server says about a file, to notice when it changes."""

    url: str
    etag: str = ""
    modified: str = ""
    size: int | None = None

    @property
    def condition(self) -> str:
        """The value for If-Range; weak tags do not promise the same bytes."""
        return self.etag if self.etag and not self.etag.startswith("W/") else self.modified

    @property
    def resumable(self) -> bool:
        """Whether anything is known that distinguishes this file from a later one."""
        return bool(self.condition) or self.size is not None


def fetch(
    download: Download,
    target: Path,
    progress: Progress | None = None,
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Fetch a file to `target`; what an earlier try left is continued."""
    progress = progress or Progress()
    for url in (download.url, *download.also):
        if urlsplit(url).scheme not in ("http", "https"):
            raise DownloadError(f"{url} is not an http or https address")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = _Part(target)
    for url in download.also:
        try:
            _complete(download, part, progress, wait)
            break
        except DownloadError as error:
            progress.say(f"{error.message}; trying {url}")
            download = replace(download, url=url)
    else:
        _complete(download, part, progress, wait)
    try:
        check(part.path, download, progress)
    except DownloadError as error:
        part.drop()
        raise DownloadError(
            error.message,
            "It was removed. The same command fetches it again; if that does not help, the file on "
            "the server has changed.",
        ) from error
    part.path.replace(target)
    part.drop()


def _complete(
    download: Download, part: _Part, progress: Progress, wait: Callable[[float], None]
) -> None:
    """Connect until all is there, or until several connections in a row brought nothing."""
    failures = 0
    while True:
        before = part.length()
        try:
            return _transfer(download, part, progress)
        except _BrokenError as problem:
            failures = 1 if part.length() > before else failures + 1
            if failures == TRIES:
                raise DownloadError(
                    f"{download.url} cannot be reached: {problem} ({TRIES} tries)",
                    "Check the network; the same command continues where this one stopped.",
                ) from problem
            pause = FIRST_PAUSE * 2 ** (failures - 1)
            nth = f"try {failures + 1} of {TRIES} in {pause:.0f} s"
            progress.say(f"{part.name}: {problem}; {nth}")
            wait(pause)


def check(path: Path, download: Download, progress: Progress | None = None) -> None:
    """Compare a file's size and checksum with what is known of the download."""
    size = path.stat().st_size
    if download.size is not None and size != download.size:
        raise _mismatch(path, "size", f"{size} bytes", f"{download.size} bytes")
    algorithm = "sha256" if download.sha256 else "md5" if download.md5 else ""
    if algorithm:
        expected = (download.sha256 or download.md5).lower()
        found = _digest(path, algorithm, progress or Progress())
        if found != expected:
            raise _mismatch(path, algorithm, found, expected)


def _mismatch(path: Path, what: str, found: str, expected: str) -> DownloadError:
    return DownloadError(
        f"{path.name.removesuffix('.part')} is not the expected file\n"
        f"  {what} found     {found}\n"
        f"  {what} expected  {expected}"
    )


def _digest(path: Path, algorithm: str, progress: Progress) -> str:
    digest = hashlib.new(algorithm, usedforsecurity=False)
    name = path.name.removesuffix(".part")
    with path.open("rb") as file, progress.phase(f"checking {name}", path.stat().st_size):
        while block := file.read(1 << 20):
            digest.update(block)
            progress.advance(len(block))
    return digest.hexdigest()


class _Part:
    """An unfinished file, with the version of it that the bytes belong to."""

    def __init__(self, target: Path) -> None:
        self.name = target.name
        self.path = target.with_name(target.name + ".part")
        self._notes = target.with_name(target.name + ".part.json")

    def length(self) -> int:
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def version(self, url: str) -> Version | None:
        """The version of the bytes that are there, if more of it may be asked for."""
        try:
            version = Version(**json.loads(self._notes.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None
        usable = version.url == url and version.resumable and self.length()
        return version if usable else None

    def start(self, version: Version) -> None:
        self.drop()
        write_atomically(self._notes, json.dumps(asdict(version)))

    def drop(self) -> None:
        self.path.unlink(missing_ok=True)
        self._notes.unlink(missing_ok=True)


def _transfer(download: Download, part: _Part, progress: Progress) -> None:
    """One connection: ask for what is missing and write it to the part."""
    known = part.version(download.url)
    if known and known.size == part.length():
        return
    with _open(download.url, part.length() if known else 0, known) as response:
        found = _version(download.url, response)
        _expect(download, response, found)
        if response.status == 206 and known:
            if not _continues(response, found, known, part.length()):
                part.drop()
                raise _BrokenError("the file on the server has changed; starting over")
            progress.say(f"{part.name}: continuing at {decimal(part.length())}")
        else:
            if known:
                progress.say(f"{part.name}: the server sends all of it again; starting over")
            part.start(found)
        _write(response, part, found.size, progress)


def _open(url: str, start: int, known: Version | None) -> HTTPResponse:
    """Send the request; refusals and network failures become errors."""
    headers = {"User-Agent": f"fsdil-bench/{__version__}", "Accept-Encoding": "identity"}
    if known and start:
        headers["Range"] = f"bytes={start}-"
        if known.condition:
            headers["If-Range"] = known.condition
    try:
        return _opener().open(Request(url, headers=headers), timeout=TIMEOUT)
    except HTTPError as error:
        answer = f"the server answers {error.code} {error.reason}".rstrip()
        if error.code == 416 and start:
            return _open(url, 0, None)  # the file has become shorter than the part
        if error.code in PASSING:
            raise _BrokenError(answer) from error
        raise DownloadError(f"{url}: {answer}") from error
    except (OSError, HTTPException) as error:
        reason = error.reason if isinstance(error, URLError) else error
        if isinstance(reason, ssl.SSLCertVerificationError):
            raise DownloadError(f"{url}: {reason.verify_message}") from error
        if isinstance(reason, str):  # urllib's own objections, which will not go away
            raise DownloadError(f"{url}: {reason}") from error
        raise _BrokenError(_say(reason)) from error


def _version(url: str, response: HTTPResponse) -> Version:
    headers = response.headers
    size = headers.get("Content-Length", "")
    if response.status == 206:
        size = headers.get("Content-Range", "").rpartition("/")[2]
    total = int(size) if size.isdecimal() else None
    return Version(url, headers.get("ETag", ""), headers.get("Last-Modified", ""), total)


def _expect(download: Download, response: HTTPResponse, found: Version) -> None:
    """Refuse a wrong file before it is fetched."""
    page = response.headers.get_content_type() == "text/html"
    if page and not download.path.endswith((".html", ".htm")):
        raise DownloadError(
            f"{download.url}: the server sends a web page instead of the file",
            "It may ask for a login or a confirmation; open the address in a browser.",
        )
    if None not in (download.size, found.size) and download.size != found.size:
        wrong = _mismatch(
            Path(download.path), "size", f"{found.size} bytes", f"{download.size} bytes"
        )
        raise DownloadError(
            wrong.message, "The file on the server has changed; nothing was fetched."
        )


def _continues(response: HTTPResponse, found: Version, known: Version, start: int) -> bool:
    """Whether the answer is the rest of the same file."""
    begins = response.headers.get("Content-Range", "").startswith(f"bytes {start}-")
    same = (found.etag, found.modified, found.size) == (known.etag, known.modified, known.size)
    return same and begins


def _write(response: HTTPResponse, part: _Part, size: int | None, progress: Progress) -> None:
    have = part.length()
    missing = None if size is None else size - have
    free = shutil.disk_usage(part.path.parent).free
    if missing is not None and missing > free:
        raise FsdilError(
            f"{part.name} needs {decimal(missing)} more, {part.path.parent} has {decimal(free)}",
            "Make room there, or choose another place with --data or FSDIL_DATA.",
        )
    with part.path.open("ab") as file, progress.phase(f"fetching {part.name}", missing):
        while block := _read(response):
            file.write(block)
            progress.advance(len(block))
        file.flush()
        os.fsync(file.fileno())
    if size is not None and part.length() < size:
        raise _BrokenError(f"the connection ended at {decimal(part.length())} of {decimal(size)}")


def _read(response: HTTPResponse) -> bytes:
    try:
        return response.read(CHUNK)
    except (OSError, HTTPException) as error:
        raise _BrokenError(_say(error)) from error


def _say(error: object) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer for {TIMEOUT:.0f} s"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follow redirects, but never from an encrypted connection to a plain one."""

    def redirect_request(
        self, req: Request, fp: Any, code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        """The request to follow up with."""
        if req.type == "https" and urlsplit(newurl).scheme != "https":
            raise DownloadError(
                f"{req.full_url}: the server redirects to an insecure address: {newurl}"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> urllib.request.OpenerDirector:
    """HTTP and HTTPS only; urllib's usual opener also reads local files and FTP."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPErrorProcessor,
        urllib.request.UnknownHandler,
        _Redirects,
    ):
        opener.add_handler(handler())
    return opener
