"""The files of the console, with and without a build."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.broker.http.console import ConsoleRoutes
from barnabas.broker.http.problem import Problem
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


@pytest.mark.parametrize("name", ["notes.txt", "nothing.js", "../console.py", ""])
async def test_other_files_are_not_served(tmp_path: Path, name: str) -> None:
    with pytest.raises(Problem, match="no such file"):
        await serve(build(tmp_path), "getConsoleFile", file=name)


async def test_without_a_build_the_page_tells_how_to_make_one(tmp_path: Path) -> None:
    routes = ConsoleRoutes(tmp_path / "nothing")
    body, content_type = await serve(routes, "getConsole")
    assert b"make console" in body
    assert content_type == "text/html; charset=utf-8"


async def test_a_browser_loads_nothing_from_elsewhere_and_runs_no_script_in_the_page() -> None:
    async with open_http_lab() as http:
        response = await http.get("/console")
        policy = response.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in policy
        assert response.headers["X-Content-Type-Options"] == "nosniff"


async def test_the_root_leads_to_the_console() -> None:
    async with open_http_lab() as http:
        response = await http.get("/")
        assert (response.status_code, response.headers["Location"]) == (307, "/console")
