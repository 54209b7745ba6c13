"""A browser, and pages that it opens: whatever a page complains of fails the test."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


@pytest.fixture(scope="package")
def browser():
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed (extra `browser`)"
    )
    program = os.environ.get("FSDIL_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"there is no browser; looked for {', '.join(NAMES)} (or set FSDIL_BROWSER)")
    with sync_api.sync_playwright() as playwright:
        # Without its sandbox, since that cannot be had as root in containers; the page is ours.
        chromium = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser):
    """Opens a file as a page as wide as a desk's. Besides the file it may fetch `also` alone."""

    @contextmanager
    def open_page(file, also=(), width=1280, **options):
        size = {"width": width, "height": 900}
        context = browser.new_context(viewport=size, color_scheme="light", **options)
        page = context.new_page()
        complaints = []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: complaints.append(request.url))
        page.goto(file.as_uri())
        yield page
        assert not page.evaluate("window.hit")
        allowed = {file.as_uri(), *(path.as_uri() for path in also)}
        assert [text for text in complaints if text not in allowed] == []
        context.close()

    return open_page
