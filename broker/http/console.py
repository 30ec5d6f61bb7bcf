"""`/console`: the console in the browser, as files that `make console` builds (docs/console.md).

The console uses the API (`broker/http/api`) as any other client does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Final

from starlette.responses import RedirectResponse, Response

from barnabas.broker.http.console_file import SECURITY_HEADERS, ConsoleFile
from barnabas.broker.http.problem import Problem
from barnabas.broker.http.routes import Call, Operation, without_parameters

CONSOLE_FILES: Final = Path(__file__).with_name("console_files")
"""The wheel contains it; a checkout has it after `make console`."""

_PATH: Final = "/console"
_DOCUMENT: Final = "index.html"
_HTML: Final = "text/html; charset=utf-8"
_TYPES: Mapping[str, str] = {
    ".html": _HTML,
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""The types of the files that the console has; other files are not served."""

_MISSING: Final = b"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Barnabas: the console is not built</title>
<h1>The console is not built</h1>
<p>This broker runs from a checkout. Install Node 18 or later, run <code>make console</code> there, and
start the broker again. The wheel and the container image contain the console.</p>
<p>The API works without it: <a href="/openapi.json">its description</a>.</p>
</html>
"""


class ConsoleRoutes:
    """The operations that a browser asks for. The files are read once."""

    def __init__(self, folder: Path = CONSOLE_FILES) -> None:
        self._files = _read_files(folder)

    def operations(self) -> Sequence[Operation]:
        return (
            Operation(
                path="/",
                handler=without_parameters(self._redirect),
                name="redirectToConsole",
                summary="To the console",
                tag="console",
                media_type="text/html",
                status=HTTPStatus.TEMPORARY_REDIRECT,
            ),
            Operation(
                path=_PATH,
                handler=without_parameters(self._document),
                name="getConsole",
                summary="The console in the browser",
                tag="console",
                media_type="text/html",
            ),
            Operation(
                path=f"{_PATH}/{{file}}",
                handler=without_parameters(self._file),
                name="getConsoleFile",
                summary="A file of the console",
                tag="console",
                media_type="text/plain",
                failures=(HTTPStatus.NOT_FOUND,),
            ),
        )

    async def _redirect(self, _: Call) -> Response:
        return RedirectResponse(_PATH)

    async def _document(self, call: Call) -> Response:
        document = self._files.get(_DOCUMENT)
        if document is None:
            return Response(_MISSING, headers={**SECURITY_HEADERS, "Content-Type": _HTML})
        return _response(document, call)

    async def _file(self, call: Call) -> Response:
        file = self._files.get(call.path["file"])
        if file is None:
            raise Problem(HTTPStatus.NOT_FOUND, "The console has no such file.")
        return _response(file, call)


def _response(file: ConsoleFile, call: Call) -> Response:
    status, headers, content = file.respond(call.headers)
    return Response(content, status, dict(headers))


def _read_files(folder: Path) -> Mapping[str, ConsoleFile]:
    """The files by name; none if the console is not built. Requests name one of them, never a path."""
    if not folder.is_dir():
        return {}
    return {path.name: _read(path) for path in folder.iterdir() if path.suffix in _TYPES and path.is_file()}


def _read(path: Path) -> ConsoleFile:
    compressed = path.with_name(f"{path.name}.gz")
    return ConsoleFile(
        path.read_bytes(), _TYPES[path.suffix], compressed.read_bytes() if compressed.exists() else None
    )
