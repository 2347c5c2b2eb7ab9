"""The files of the dashboard: where they are served, how large they are, and what is not in them."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI

import tenure.web
from tenure.web import create_app

STATIC = Path(tenure.web.__file__).parent / "static" / "dashboard"
FILES = sorted(path for path in STATIC.rglob("*") if path.is_file())


@pytest.fixture
async def plain(serving):
    server = await serving.serve(open_locally=True)
    async with httpx2.AsyncClient(base_url=server.url, trust_env=False, verify=False) as client:
        yield client


async def test_the_dashboard_is_at_the_root(plain):
    page = await plain.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert page.headers["cache-control"] == "no-cache"
    for address in re.findall(r'(?:src|href)="(static/[^"]+)"', page.text):
        assert (await plain.get(f"/{address}")).status_code == 200, address
    assert (await plain.post("/")).status_code == 405


async def test_files_are_packed_and_asked_for_again(plain):
    asked = await plain.get("/static/dashboard/main.js", headers={"accept-encoding": "gzip"})
    assert asked.headers["content-encoding"] == "gzip"
    bare = await plain.get("/static/dashboard/main.js", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in bare.headers
    assert asked.text == bare.text
    again = await plain.get("/static/dashboard/main.js", headers={"if-none-match": asked.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "path", ["/static/", "/static/../web_app.py", "/static/%2e%2e/web_app.py", "/static/dashboard", "/static/dashboard/x.py"]
)
async def test_nothing_else_is_served(plain, path):
    answer = await plain.get(path)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("prefix", ["/ops", "/a/b"])
async def test_it_works_below_any_path(app, serving, prefix):
    host = FastAPI()
    host.mount(prefix, create_app(app))
    server = await serving.serve(host)
    async with httpx2.AsyncClient(base_url=server.url, trust_env=False, verify=False, follow_redirects=True) as client:
        for address in (prefix, f"{prefix}/"):
            page = await client.get(address)
            assert str(page.url).endswith(f"{prefix}/")
            assert "<title>Tenure</title>" in page.text
        assert (await client.get(f"{prefix}/static/dashboard/main.js")).status_code == 200


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(STATIC)))
def test_a_file_is_small_and_has_no_way_to_markup(path):
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= 400
    if path.suffix == ".js":
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|setHTML", text
        )
        assert not re.search(r"""(?:from|import)\(?\s*["'](?!\.)""", text), "imports are relative"
        assert not re.search(r"""["'`(]/(?:_api|static)""", text), "addresses are relative"
    if path.suffix == ".html":
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", text)
    assert not re.search(r"https?://(?!www\.w3\.org)", text), "nothing is loaded from elsewhere"


def test_the_first_page_is_light():
    """All that an overview loads before it is complete, packed, without its data."""
    first = ["index.html", "icon.svg", "theme.js", "main.js", "shell.js", "pages/overview.js"]
    files = [STATIC / name for name in first] + [
        path for path in FILES if path.suffix == ".css" or path.parent.name in ("lib", "charts")
    ]
    assert sum(len(gzip.compress(path.read_bytes(), 9)) for path in files) < 70_000
