"""A listener that strangers can reach needs authentication, or its owner's word."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.broker.config.errors import ConfigError
from barnabas.broker.config.loading import load_config
from barnabas.broker.config.open_listeners import refuse_open_listeners

ADDRESSES = {
    "here": ["127.0.0.1", "::1"],
    "both": ["127.0.0.1", "192.0.2.1"],
    "broker.example": ["192.0.2.1"],
    "192.0.2.7": ["192.0.2.7"],
    "0.0.0.0": ["0.0.0.0"],
    "::": ["::"],
}


def resolve(host: str, port: int) -> list[Any]:
    if host not in ADDRESSES:
        raise OSError(f"{host} is unknown")
    return [(2, 1, 6, "", (address, port)) for address in ADDRESSES[host]]


def refusal(*settings: str) -> str | None:
    try:
        refuse_open_listeners(load_config(None, {}, settings), resolve)
    except ConfigError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("listeners", "named"),
    [
        ("PLAINTEXT://:9092", "0.0.0.0:9092"),
        ("PLAINTEXT://0.0.0.0:9092", "0.0.0.0:9092"),
        ("PLAINTEXT://[::]:9092", "[::]:9092"),
        ("PLAINTEXT://broker.example:9092", "broker.example:9092"),
        ("PLAINTEXT://both:9092", "both:9092"),
        ("SSL://192.0.2.7:9092", "192.0.2.7:9092"),
        ("IN://localhost:9092,A://192.0.2.7:19092,B://:29092", "192.0.2.7:19092, 0.0.0.0:29092"),
    ],
)
def test_an_open_listener_refuses_the_start(listeners: str, named: str) -> None:
    told = refusal(f"listeners={listeners}")
    assert told is not None
    assert told.startswith(f"Every client that can reach {named} could read, write and delete everything, ")
    assert "Set listeners.allow.unauthenticated=true if only trusted clients can reach it" in told
    assert refusal(f"listeners={listeners}", "listeners.allow.unauthenticated=true") is None


@pytest.mark.parametrize(
    "settings",
    [
        ["listeners=A://127.0.0.7:1"],
        ["listeners=A://[::1]:1"],
        ["listeners=A://LocalHost:1"],
        ["listeners=A://here:1"],
        ["listeners=A://unknown:1"],
        ["listeners=SASL_PLAINTEXT://:1,SASL_SSL://:2,CONTROLLER://:3"],
        ["listeners=SSL://:1", "ssl.client.auth=required"],
        ["listeners=SSL://:1", "ssl.client.auth=requested", "listener.name.ssl.ssl.client.auth=required"],
    ],
)
def test_another_one_does_not(settings: list[str]) -> None:
    assert refusal(*settings) is None


@pytest.mark.parametrize("auth", ["none", "requested"])
def test_certificates_that_may_be_missing_authenticate_nobody(auth: str) -> None:
    assert refusal("listeners=SSL://:1", f"ssl.client.auth={auth}") is not None
