"""Checks whether a broker serves at an address and can write: requests its API versions, as clients do first,
and then the state of its data directories (DescribeLogDirs, KIP-113).

It imports almost nothing, because the check runs again and again, each time in a new process.
"""

import socket
import struct
from collections.abc import Iterator
from time import monotonic

_SECONDS_MAX = 3.0
"""The time limit of the whole check, except looking up the host name, which has the system's own limits."""

_ANSWER_BYTES_MAX = 64 * 1024
_LENGTH = struct.Struct(">i")
_CORRELATION_ID = struct.pack(">i", 1)
_API_VERSIONS = struct.pack(">ihh4sh", 10, 18, 0, _CORRELATION_ID, -1)
"""ApiVersions v0 of a client without an id, with its length."""
_LOG_DIRS_KEY, _LOG_DIRS_VERSION = 35, 1
_LOG_DIRS = struct.pack(">ihh4shi", 14, _LOG_DIRS_KEY, _LOG_DIRS_VERSION, _CORRELATION_ID, -1, 0)
"""DescribeLogDirs v1 about no partition."""
_SERVED_API = struct.Struct(">hhh")
_SERVED_APIS_START = 2 + 4
"""After the error code and the count."""
_RESULTS_START = 4 + 4
"""After the throttle time and the count."""
_RESULT = struct.Struct(">hh")
"""The error code of a directory and the length of its path; the path and a count of 0 topics follow."""
_NO_TOPICS_BYTES = 4
_STORAGE_ERROR = 56


def check_health(
    host: str, port: int, *, has_tls: bool = False, asks_for_certificate: bool = False, has_sasl: bool = False
) -> list[str]:
    """The data directories that the broker cannot write to, because the disk is full, or cannot read.

    Raises OSError with the reason if no broker answers in time. A broker without DescribeLogDirs is healthy
    if it answers. The check has no password and no certificate: where the listener asks for a password, it
    only requests the API versions; where it asks for a certificate, it ends with the server's part of the
    handshake.
    """
    deadline = monotonic() + _SECONDS_MAX
    opened = _connect(host, port, deadline)
    with _with_tls(opened) if has_tls else opened as connection:
        if asks_for_certificate:
            return []
        if has_sasl:
            _ask(connection, _API_VERSIONS, deadline)
            return []
        if not _serves_log_dirs(_ask(connection, _API_VERSIONS, deadline)):
            return []
        answer = _ask(connection, _LOG_DIRS, deadline)
    try:
        return list(_failed_directories(answer))
    except (struct.error, UnicodeDecodeError) as error:
        raise ConnectionError("the broker's answer is malformed") from error


def _with_tls(connection: socket.socket) -> socket.socket:
    """The certificate is not checked: whether it is right concerns clients, and not the broker's health."""
    import ssl  # few brokers use it

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with connection:  # closes it if the handshake fails; else its descriptor belongs to the result
        return context.wrap_socket(connection)


def _ask(connection: socket.socket, request: bytes, deadline: float) -> bytes:
    """The body of the answer."""
    connection.sendall(request)
    (size_bytes,) = _LENGTH.unpack(_receive(connection, _LENGTH.size, deadline))
    is_plausible = len(_CORRELATION_ID) <= size_bytes <= _ANSWER_BYTES_MAX
    answer = _receive(connection, size_bytes, deadline) if is_plausible else b""
    if not answer.startswith(_CORRELATION_ID):
        raise ConnectionError("the answer is not from a broker")
    return answer[len(_CORRELATION_ID) :]


def _serves_log_dirs(api_versions: bytes) -> bool:
    served = api_versions[_SERVED_APIS_START:]
    whole_bytes = len(served) - len(served) % _SERVED_API.size
    return any(
        key == _LOG_DIRS_KEY and low <= _LOG_DIRS_VERSION <= high
        for key, low, high in _SERVED_API.iter_unpack(served[:whole_bytes])
    )


def _failed_directories(log_dirs: bytes) -> Iterator[str]:
    """The paths with a storage error. Raises struct.error or UnicodeDecodeError for a malformed answer."""
    position = _RESULTS_START
    while position < len(log_dirs):
        error_code, path_bytes = _RESULT.unpack_from(log_dirs, position)
        start = position + _RESULT.size
        position = start + path_bytes + _NO_TOPICS_BYTES
        if error_code == _STORAGE_ERROR:
            yield log_dirs[start : start + path_bytes].decode()


def _connect(host: str, port: int, deadline: float) -> socket.socket:
    """A connection to the first of the host's addresses that accepts one."""
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
    assert failure is not None, "getaddrinfo raises for a name without addresses"
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
