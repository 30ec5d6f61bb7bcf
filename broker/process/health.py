"""Whether a broker serves at an address: it is asked for its API versions, as any client does first.

Imports next to nothing, since the question is asked again and again, each time by a new process.
"""

import socket
import struct
from time import monotonic

_SECONDS_MAX = 3.0
"""Until the whole answer is there. The operating system has limits of its own for looking up a name."""

_ANSWER_BYTES_MAX = 64 * 1024
_LENGTH = struct.Struct(">i")
_CORRELATION_ID = struct.pack(">i", 1)
_REQUEST = struct.pack(">ihh4sh", 10, 18, 0, _CORRELATION_ID, -1)
"""ApiVersions v0 of a client without an id, its length included."""


def check_health(host: str, port: int) -> None:
    """Raises OSError, which says why, unless a broker answers in time."""
    deadline = monotonic() + _SECONDS_MAX
    with _connect(host, port, deadline) as connection:
        connection.sendall(_REQUEST)
        (size_bytes,) = _LENGTH.unpack(_receive(connection, _LENGTH.size, deadline))
        is_plausible = len(_CORRELATION_ID) <= size_bytes <= _ANSWER_BYTES_MAX
        answer = _receive(connection, size_bytes, deadline) if is_plausible else b""
    if not answer.startswith(_CORRELATION_ID):
        raise ConnectionError("what answers is no broker")


def _connect(host: str, port: int, deadline: float) -> socket.socket:
    """To the first of the host's addresses where that can be done."""
    failure: OSError | None = None
    for family, kind, protocol, _, address in socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM):
        connection = socket.socket(family, kind, protocol)
        try:
            connection.settimeout(_seconds_until(deadline))
            connection.connect(address)
        except OSError as error:
            connection.close()
            failure = failure or error
        else:
            return connection
    assert failure is not None, "a name without addresses is an error of its own"
    raise failure


def _receive(connection: socket.socket, byte_count: int, deadline: float) -> bytes:
    received = b""
    while len(received) < byte_count:
        connection.settimeout(_seconds_until(deadline))
        some = connection.recv(byte_count - len(received))
        if not some:
            raise ConnectionError("the connection was closed without an answer")
        received += some
    return received


def _seconds_until(deadline: float) -> float:
    seconds = deadline - monotonic()
    if seconds <= 0:
        raise TimeoutError("timed out")
    return seconds
