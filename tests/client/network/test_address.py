"""The notation of broker addresses."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from barnabas.client.errors import MisuseError
from barnabas.client.network.address import Address, parse_bootstrap


@pytest.mark.parametrize(
    ("given", "addresses"),
    [
        ("localhost:9092", [("localhost", 9092)]),
        ("localhost", [("localhost", 9092)]),
        ("one:1, two:2,", [("one", 1), ("two", 2)]),
        (["one:1", "two"], [("one", 1), ("two", 9092)]),
        ("[::1]:9093", [("::1", 9093)]),
        ("[::1]", [("::1", 9092)]),
    ],
)
def test_addresses_are_read(given: str | Sequence[str], addresses: list[tuple[str, int]]) -> None:
    assert parse_bootstrap(given) == [Address(*one) for one in addresses]


@pytest.mark.parametrize("given", ["", ",", [], ":9092", "host:", "host:port", "host:0", "host:70000"])
def test_a_malformed_address_is_refused(given: str | Sequence[str]) -> None:
    with pytest.raises(MisuseError):
        parse_bootstrap(given)


def test_the_error_names_a_port_out_of_range() -> None:
    with pytest.raises(MisuseError, match="'host:99999' has the port 99999, but a port is a number from 1"):
        parse_bootstrap("host:99999")


def test_an_address_is_printed_as_host_and_port() -> None:
    assert str(Address("localhost", 9092)) == "localhost:9092"
