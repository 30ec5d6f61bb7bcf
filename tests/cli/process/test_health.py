"""The health check, against brokers and other programs that listen on a port."""

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from barnabas.__main__ import main
from barnabas.cli.process import health
from barnabas.cli.process.health import check_health
from barnabas.protocol.header import decode_request_header
from tests.broker.network.certificates import Authority

ANSWER = b"\0\0\0\x06\0\0\0\x01\0\0"

SERVED = bytes.fromhex("00000010 00000001 0000 00000001 0023 0001 0005")
"""ApiVersions: DescribeLogDirs in versions 1 to 5, and nothing else."""


def log_dirs(*results: tuple[int, str]) -> bytes:
    """DescribeLogDirs: error code and path of each directory."""
    body = bytes(4) + struct.pack(">i", len(results))
    for error_code, path in results:
        body += struct.pack(f">hh{len(path)}si", error_code, len(path), path.encode(), 0)
    return struct.pack(">i", 4 + len(body)) + b"\0\0\0\x01" + body


@contextmanager
def listening(answer: Callable[[socket.socket], None]) -> Generator[int]:
    """A port at which `answer` serves one connection, which is then closed."""

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            answer(connection)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


def test_the_first_request_is_one_that_every_broker_answers() -> None:
    requests: list[bytes] = []

    def answer(connection: socket.socket) -> None:
        requests.append(connection.recv(1024))
        connection.sendall(ANSWER)

    with listening(answer) as port:
        check_health("127.0.0.1", port)
    header = decode_request_header(requests[0][4:])
    assert (header.api_key, header.api_version, header.body_offset) == (18, 0, len(requests[0]) - 4)


@pytest.mark.parametrize(
    "arguments",
    [
        ["127.0.0.1:{port}"],
        ["--listen", "127.0.0.1:{port}"],
        ["--set", "listeners=A://:{port},B://:1"],
        ["--set", "listeners=CONTROLLER://:1,A://0.0.0.0:{port}"],
        ["--set", "listeners=SASL_SSL://:1,SSL://:2,PLAINTEXT://:{port}"],
        ["--set", "listeners=SASL_PLAINTEXT://:{port}"],
    ],
)
def test_the_command_succeeds_where_a_broker_answers(arguments: list[str]) -> None:
    with listening(lambda connection: connection.sendall(ANSWER)) as port:
        assert main(["healthcheck", *(argument.format(port=port) for argument in arguments)]) == 0


@pytest.mark.parametrize("auth", ["none", "required"])
def test_the_command_succeeds_where_a_broker_answers_by_tls(tmp_path: Path, auth: str) -> None:
    authority = Authority(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.write_pem(authority.issue()))

    def answer(connection: socket.socket) -> None:
        with suppress(OSError), context.wrap_socket(connection, server_side=True) as secured:
            secured.recv(1024)
            secured.sendall(ANSWER)

    with listening(answer) as port:
        listeners = f"listeners=SSL://127.0.0.1:{port}"
        assert main(["healthcheck", "--set", listeners, "--set", f"ssl.client.auth={auth}"]) == 0


def test_the_command_finds_the_address_in_the_environment_of_the_broker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with listening(lambda connection: connection.sendall(ANSWER)) as port:
        monkeypatch.setenv("KAFKA_LISTENERS", f"IN://:{port},OUT://:1")
        assert main(["healthcheck"]) == 0


def test_the_command_requires_an_address_if_the_system_selects_the_port(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["healthcheck", "--listen", ":0"]) == 2
    assert "give the healthcheck its ADDRESS" in capsys.readouterr().err


def test_an_answer_may_come_byte_by_byte() -> None:
    def answer(connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in ANSWER:
            connection.sendall(bytes([byte]))

    with listening(answer) as port:
        assert check_health("127.0.0.1", port) == []


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        pytest.param(b"SSH-2.0-OpenSSH_9.6\r\n", "not from a broker", id="another protocol"),
        pytest.param(b"\xff\xff\xff\xff", "not from a broker", id="negative length"),
        pytest.param(b"\0\0\0\x02\0\0", "not from a broker", id="too short"),
        pytest.param(b"\0\0\0\x06\0\0\0\x02\0\0", "not from a broker", id="answer to another request"),
        pytest.param(ANSWER[:-1], "closed without an answer", id="cut short"),
        pytest.param(b"", "closed without an answer", id="nothing"),
    ],
)
def test_any_other_answer_is_not_healthy(sent: bytes, reason: str) -> None:
    def answer(connection: socket.socket) -> None:
        connection.recv(1024)
        connection.sendall(sent)

    with listening(answer) as port, pytest.raises(ConnectionError, match=reason):
        check_health("127.0.0.1", port)


def test_the_whole_answer_must_arrive_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock advances a second with each look: one byte arrives in time, and no other."""

    def answer(connection: socket.socket) -> None:
        connection.recv(1024)
        connection.sendall(ANSWER[:1])
        connection.recv(1)

    monkeypatch.setattr(health, "monotonic", iter(range(100)).__next__)
    with listening(answer) as port, pytest.raises(TimeoutError):
        check_health("127.0.0.1", port)


def answering(*answers: bytes) -> Callable[[socket.socket], None]:
    def answer(connection: socket.socket) -> None:
        for one in answers:
            connection.recv(1024)
            connection.sendall(one)

    return answer


def test_the_second_request_is_for_directories_without_partitions() -> None:
    requests: list[bytes] = []

    def answer(connection: socket.socket) -> None:
        for one in (SERVED, log_dirs()):
            requests.append(connection.recv(1024))
            connection.sendall(one)

    with listening(answer) as port:
        check_health("127.0.0.1", port)
    header = decode_request_header(requests[1][4:])
    assert (header.api_key, header.api_version) == (35, 1)
    assert requests[1][4:][header.body_offset :] == bytes(4)


def test_a_directory_that_cannot_be_written_is_a_failure_with_its_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    directories = log_dirs((0, "/good"), (56, "/full"), (31, "/forbidden"))
    with listening(answering(SERVED, directories)) as port:
        assert main(["healthcheck", f"127.0.0.1:{port}"]) == 1
    assert capsys.readouterr().err == (
        f"barnabas: The broker at 127.0.0.1:{port} cannot write to /full: the disk is full or fails. The "
        "broker's log has the cause.\n"
    )


def test_directories_in_order_are_healthy() -> None:
    with listening(answering(SERVED, log_dirs((0, "/good")))) as port:
        assert main(["healthcheck", f"127.0.0.1:{port}"]) == 0


def test_a_malformed_answer_about_directories_is_not_healthy() -> None:
    answer = log_dirs((56, "/full")) + b"x"
    answer = struct.pack(">i", len(answer) - 4) + answer[4:]
    with (
        listening(answering(SERVED, answer)) as port,
        pytest.raises(ConnectionError, match="malformed"),
    ):
        check_health("127.0.0.1", port)
