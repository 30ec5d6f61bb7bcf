"""Ports for servers that a test starts: nobody else gets them, also while the server is down."""

from __future__ import annotations

import socket

import pytest

from tests.clients.broker_process import reserved_port


def test_a_server_listens_on_a_reserved_port_again_and_again_and_nobody_else_can_bind_it() -> None:
    address = ("127.0.0.1", reserved_port())
    for _ in range(2):
        with socket.create_server(address), socket.create_connection(address):
            pass
        with socket.socket() as other, pytest.raises(OSError, match="Address already in use"):
            other.bind(address)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address)
