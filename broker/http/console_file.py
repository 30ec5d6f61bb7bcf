"""A file of the console and its responses: compressed or not, complete, or "not modified" (RFC 9110).

Pure. The content is compressed when the console is built, so a request costs no computation.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from http import HTTPStatus
from types import MappingProxyType
from typing import Final, NamedTuple

SECURITY_HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Content-Security-Policy": (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
        "Cross-Origin-Opener-Policy": "same-origin",
        "Referrer-Policy": "no-referrer",
    }
)
"""A browser loads everything from this broker and nothing from elsewhere, and shows it in no frame."""

_CACHE_CONTROL: Final = "no-cache"
"""The browser keeps a copy, and asks each time whether it is still right: names of files stay the same when
another version of the broker starts.
"""
_GZIP: Final = "gzip"
_ETAG_CHARACTERS: Final = 32


class FileResponse(NamedTuple):
    """The parts of a response."""

    status: HTTPStatus
    headers: Mapping[str, str]
    content: bytes


class ConsoleFile:
    """`compressed` is the content in gzip's format, or None if it has not been compressed."""

    def __init__(self, content: bytes, content_type: str, compressed: bytes | None) -> None:
        self._content = content
        self._content_type = content_type
        self._compressed = compressed
        self._tag = sha256(content).hexdigest()[:_ETAG_CHARACTERS]

    def respond(self, request_headers: Mapping[str, str]) -> FileResponse:
        """The response to GET, and also to HEAD, whose content the server leaves out."""
        compressed = self._compressed if _accepts_gzip(request_headers.get("accept-encoding", "")) else None
        etag = f'"{self._tag}"' if compressed is None else f'"{self._tag}-{_GZIP}"'
        headers = {
            **SECURITY_HEADERS,
            "Cache-Control": _CACHE_CONTROL,
            "ETag": etag,
            "Vary": "Accept-Encoding",
        }
        if _names(request_headers.get("if-none-match", ""), etag):
            return FileResponse(HTTPStatus.NOT_MODIFIED, headers, b"")
        headers["Content-Type"] = self._content_type
        if compressed is None:
            return FileResponse(HTTPStatus.OK, headers, self._content)
        return FileResponse(HTTPStatus.OK, {**headers, "Content-Encoding": _GZIP}, compressed)


def _accepts_gzip(accept_encoding: str) -> bool:
    """Whether the client names gzip (RFC 9110, 12.5.3). A weight of 0 excludes it."""
    for entry in accept_encoding.lower().split(","):
        coding, _, weight = entry.replace(" ", "").partition(";q=")
        if coding == _GZIP:
            return not weight or bool(weight.strip("0."))
    return False


def _names(if_none_match: str, etag: str) -> bool:
    """Whether the header has the tag (RFC 9110, 13.1.2), which is compared weakly."""
    given = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return etag in given or given == ["*"]
