"""The HTTP port of the controls: tokens, malformed requests, paths and errors, over a real connection."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Generator, Mapping
from urllib.parse import urlsplit

import pytest

from barnabas.broker.testing.control_port import BODY_BYTES_MAX, HEADER_BYTES_MAX
from barnabas.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Generator[Broker]:
    with Broker() as running:
        yield running


def ask(
    broker: Broker, method: str, path: str, body: str | None = None, token: str | None = None
) -> tuple[int, Mapping[str, object]]:
    """The status and the body of an answer."""
    headers = {"Authorization": f"Bearer {broker.control_token if token is None else token}"}
    connection = http.client.HTTPConnection(urlsplit(broker.control_url).netloc)
    try:
        connection.request(method, f"/testing/v1/{path}", body, headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def raw(broker: Broker, data: bytes) -> bytes:
    """All bytes that come back until the connection is closed."""
    port = urlsplit(broker.control_url).port
    assert port is not None
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(data)
        received = b""
        while some := connection.recv(65536):
            received += some
        return received


@pytest.mark.parametrize("token", ["", "wrong", "é"])
def test_a_request_needs_the_token(broker: Broker, token: str) -> None:
    assert ask(broker, "POST", "reset", token=token) == (401, {"error": "Unauthorized"})


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"nonsense", b"400"),
        (b"GET /testing/v1/clock HTTP/1.0", b"400"),
        (b"GET /testing/v1/clock HTTP/1.1\r\nno colon", b"400"),
        (b"GET /testing/v1/clock HTTP/1.1\r\nTransfer-Encoding: chunked", b"400"),
        (b"GET /testing/v1/clock HTTP/1.1\r\nX: " + b"x" * HEADER_BYTES_MAX, b"431"),
    ],
)
def test_a_malformed_request_closes_the_connection(
    broker: Broker, request_line: bytes, status: bytes
) -> None:
    assert raw(broker, request_line + b"\r\n\r\n").startswith(b"HTTP/1.1 " + status)


@pytest.mark.parametrize(("length", "status"), [(b"-1", b"400"), (b"%d" % (BODY_BYTES_MAX + 1), b"413")])
def test_the_length_of_a_body_is_checked(broker: Broker, length: bytes, status: bytes) -> None:
    head = b"POST /testing/v1/faults HTTP/1.1\r\nAuthorization: Bearer %s\r\nContent-Length: %s\r\n\r\n" % (
        broker.control_token.encode(),
        length,
    )
    assert raw(broker, head).startswith(b"HTTP/1.1 " + status)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "error"),
    [
        ("GET", "nothing", None, 404, "GET /testing/v1/nothing is no control. docs/testing.md lists them."),
        ("POST", "faults", "{", 400, "The body is not JSON"),
        ("POST", "faults", "[]", 400, "The body must be a JSON object."),
        ("DELETE", "faults/7", None, 404, "There is no fault 7."),
        ("DELETE", "faults/x", None, 400, "The fault is 'x'; it must be a number from 0"),
        ("GET", "records/t?partition=-1", None, 400, "partition is '-1'; it must be a number from 0"),
        ("GET", "records/nowhere", None, 404, "unknown_topic_or_partition: There is no topic nowhere."),
        ("GET", "share-state/nobody", None, 404, "group_id_not_found"),
        ("POST", "clock/advance", '{"ms": 1.5}', 400, "ms is 1.5; it must be a whole number from 0"),
        ("POST", "clock/advance", '{"ms": 1, "session": true}', 400, "There is no field session."),
    ],
)
def test_a_wrong_request_gets_one_clear_error(
    broker: Broker, method: str, path: str, body: str | None, status: int, error: str
) -> None:
    found, answer = ask(broker, method, path, body)
    assert found == status
    assert str(answer["error"]).startswith(error)


def test_a_partition_that_does_not_exist_is_missing(broker: Broker) -> None:
    broker.create_topic("t", partitions=2)
    assert ask(broker, "GET", "records/t?partition=2") == (404, {"error": "t has no partition 2, only 2."})
