"""`/console`: the console in the browser, as files that `make console` builds (docs/console.md).

A browser may load everything from this broker and nothing from elsewhere. The console uses the API
(`broker/http/api`) as any other client does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Final

from starlette.responses import RedirectResponse, Response

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

_HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Content-Security-Policy": (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
        "Referrer-Policy": "no-referrer",
    }
)

_MISSING: Final = b"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Barnabas: the console is not built</title>
<h1>The console is not built</h1>
<p>This broker runs from a checkout. Install Node 20 or later, run <code>make console</code> there, and
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

    async def _document(self, _: Call) -> Response:
        document = self._files.get(_DOCUMENT)
        return _response(_MISSING, _HTML) if document is None else _response(document, _HTML)

    async def _file(self, call: Call) -> Response:
        name = call.path["file"]
        content = self._files.get(name)
        if content is None:
            raise Problem(HTTPStatus.NOT_FOUND, "The console has no such file.")
        return _response(content, _TYPES[Path(name).suffix])


def _read_files(folder: Path) -> Mapping[str, bytes]:
    """The contents by name; none if the console is not built."""
    if not folder.is_dir():
        return {}
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in _TYPES}


def _response(content: bytes, content_type: str) -> Response:
    return Response(content, headers={**_HEADERS, "Content-Type": content_type})
