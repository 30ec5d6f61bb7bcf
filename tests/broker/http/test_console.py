"""The files of the console, with and without a build."""

from __future__ import annotations

import asyncio
import gzip
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from barnabas.broker.http.application import make_application
from barnabas.broker.http.connections import HttpServer
from barnabas.broker.http.console import ConsoleRoutes
from barnabas.broker.http.problem import Problem
from barnabas.broker.http.protection import AccessRules
from barnabas.broker.http.routes import Call, Received
from tests.broker.http.http_lab import open_http_lab


def received(**path: str) -> Received:
    return Received(Call(path, {}, "192.0.2.1"), {}, b"")


def build(folder: Path) -> ConsoleRoutes:
    (folder / "index.html").write_text("<title>console</title>")
    (folder / "console.js").write_text("run()")
    (folder / "notes.txt").write_text("not served")
    return ConsoleRoutes(folder)


async def serve(routes: ConsoleRoutes, name: str, **path: str) -> tuple[bytes, str]:
    """The body and the content type."""
    [operation] = [one for one in routes.operations() if one.name == name]
    response = await operation.serve(received(**path))
    return bytes(response.body), response.headers["Content-Type"]


async def test_a_build_is_served_with_its_types(tmp_path: Path) -> None:
    routes = build(tmp_path)
    document = (b"<title>console</title>", "text/html; charset=utf-8")
    assert await serve(routes, "getConsole") == document
    script = (b"run()", "text/javascript; charset=utf-8")
    assert await serve(routes, "getConsoleFile", file="console.js") == script


@pytest.mark.parametrize("name", ["notes.txt", "nothing.js", "../console.py", "console.js.gz", "lib.js", ""])
async def test_other_files_are_not_served(tmp_path: Path, name: str) -> None:
    (tmp_path / "lib.js").mkdir()
    with pytest.raises(Problem, match="no such file"):
        await serve(build(tmp_path), "getConsoleFile", file=name)


@asynccontextmanager
async def ask(routes: ConsoleRoutes) -> AsyncGenerator[Callable[[str], Awaitable[bytes]]]:
    """Sends a request line and headers to a server on a socket; its complete response."""
    server = HttpServer(make_application(routes.operations(), AccessRules(frozenset(), None)))
    await server.start("127.0.0.1", 0)

    async def send(head: str) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(f"{head}\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
        response = await reader.read()
        writer.close()
        await writer.wait_closed()
        return response

    yield send
    await server.close()


async def test_a_browser_gets_each_form_of_a_file_over_a_socket(tmp_path: Path) -> None:
    (tmp_path / "console.js.gz").write_bytes(gzip.compress(b"run()", mtime=0))
    async with ask(build(tmp_path)) as send:
        plain = await send("GET /console/console.js HTTP/1.1")
        head, _, content = (
            await send("GET /console/console.js HTTP/1.1\r\nAccept-Encoding: gzip")
        ).partition(b"\r\n\r\n")
        assert plain.endswith(b"\r\n\r\nrun()")
        assert gzip.decompress(content) == b"run()"
        etag = re.findall(rb'etag: ("[0-9a-f]+-gzip")', head)[0].decode()
        request = f"GET /console/console.js HTTP/1.1\r\nAccept-Encoding: gzip\r\nIf-None-Match: {etag}"
        kept = await send(request)
        assert kept.startswith(b"HTTP/1.1 304 ")
        assert kept.endswith(b"\r\n\r\n")


async def test_head_has_the_headers_of_get_and_no_content(tmp_path: Path) -> None:
    async with ask(build(tmp_path)) as send:
        response = await send("HEAD /console HTTP/1.1")
        assert response.startswith(b"HTTP/1.1 200 ")
        assert b"\r\ncontent-length: 22\r\n" in response
        assert response.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    "path",
    [
        "/console/../console.py",
        "/console/%2e%2e%2fconsole.py",
        "/console//etc/passwd",
        "/console/..%5cconsole.py",
    ],
)
async def test_a_path_outside_of_the_folder_is_refused(tmp_path: Path, path: str) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "console.py").write_text("secret")
    async with ask(build(tmp_path / "files")) as send:
        response = await send(f"GET {path} HTTP/1.1")
        assert response.startswith(b"HTTP/1.1 404 ")
        assert b"secret" not in response


async def test_without_a_build_the_page_tells_how_to_make_one(tmp_path: Path) -> None:
    routes = ConsoleRoutes(tmp_path / "nothing")
    body, content_type = await serve(routes, "getConsole")
    assert b"make console" in body
    assert content_type == "text/html; charset=utf-8"


@pytest.mark.parametrize("is_built", [True, False])
async def test_a_browser_loads_nothing_from_elsewhere_and_runs_no_script_in_the_page(
    tmp_path: Path, is_built: bool
) -> None:
    routes = build(tmp_path) if is_built else ConsoleRoutes(tmp_path)
    [operation] = [one for one in routes.operations() if one.name == "getConsole"]
    headers = (await operation.serve(received())).headers
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert (headers["Referrer-Policy"], headers["Cross-Origin-Opener-Policy"]) == (
        "no-referrer",
        "same-origin",
    )


async def test_browsers_keep_files_but_neither_the_missing_page_nor_problems(tmp_path: Path) -> None:
    async with ask(build(tmp_path)) as send:
        assert b"cache-control: no-cache\r\n" in (await send("GET /console HTTP/1.1")).lower()
        problem = (await send("GET /console/nothing.js HTTP/1.1")).lower()
        assert b"cache-control: no-store\r\n" in problem
        assert b"x-content-type-options: nosniff\r\n" in problem
    async with ask(ConsoleRoutes(tmp_path / "nothing")) as send:
        assert b"cache-control: no-store\r\n" in (await send("GET /console HTTP/1.1")).lower()


async def test_the_root_leads_to_the_console() -> None:
    async with open_http_lab() as http:
        response = await http.get("/")
        assert (response.status_code, response.headers["Location"]) == (307, "/console")
