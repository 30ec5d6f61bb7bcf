"""Recognises other protocols than Kafka's by the bytes at the start of a frame."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import FrameError

_HTTP_METHODS: Final = (
    b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"CONNECT ", b"OPTIONS ", b"TRACE ", b"PATCH ", b"PRI ",
)  # fmt: skip
"""The last one begins HTTP/2."""

_TLS_HANDSHAKE: Final = b"\x16\x03"

_REQUEST_LINE_BYTES_MAX: Final = 100

_HTTP_TEXT: Final = b"This is a listener of a Kafka broker. It does not speak HTTP.\n"


class ForeignProtocolError(FrameError):
    """The client uses another protocol. `answer` is a response in that protocol, or empty."""

    def __init__(self, message: str, answer: bytes = b"") -> None:
        super().__init__(message)
        self.answer = answer


def foreign_protocol(data: bytes) -> ForeignProtocolError | None:
    """The protocol of `data`, the start of a frame; None if it is not recognised."""
    if data.startswith(_TLS_HANDSHAKE):
        return ForeignProtocolError(
            "A TLS ClientHello came to this Kafka listener, which does not use TLS: set "
            "security.protocol=PLAINTEXT in the client."
        )
    if any(data.startswith(method[: len(data)]) for method in _HTTP_METHODS):
        return ForeignProtocolError(
            f"An HTTP request ({_request_line(data)}) came to this Kafka listener, which does not use HTTP.",
            _http_answer(),
        )
    return None


def _request_line(data: bytes) -> str:
    """Method and path, as far as they have arrived, without unprintable characters."""
    line = data[:_REQUEST_LINE_BYTES_MAX].partition(b"\r")[0].partition(b"\n")[0]
    words = line.decode("ascii", "replace").split(" HTTP/")[0].strip()
    return "".join(character if character.isprintable() else "?" for character in words)


def _http_answer() -> bytes:
    head = (
        b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n"
        b"Content-Length: %d\r\n\r\n" % len(_HTTP_TEXT)
    )
    return head + _HTTP_TEXT
