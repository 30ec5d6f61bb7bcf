"""SCRAM with the example exchanges of its RFCs, and with servers that violate the protocol."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from barnabas.client.errors import AuthenticationError
from barnabas.client.network.scram import ITERATIONS_MAX, ScramClient


class Exchange(NamedTuple):
    """Both sides of one exchange for the user `user` with the password `pencil`."""

    hash_name: str
    nonce: str
    first: str
    challenge: str
    final: str
    last: str


RFC_5802 = Exchange(
    "sha1",
    "fyko+d2lbbFgONRv9qkxdawL",
    "n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
    "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
    "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
    "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
)
RFC_7677 = Exchange(
    "sha256",
    "rOprNGfwEbeRWgbNEkqO",
    "n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
    "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
    "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
)


def client(exchange: Exchange, password: str = "pencil") -> ScramClient:
    return ScramClient(exchange.hash_name, "user", password, exchange.nonce)


@pytest.mark.parametrize("exchange", [RFC_5802, RFC_7677], ids=["rfc-5802", "rfc-7677"])
def test_the_exchange_is_that_of_the_rfc(exchange: Exchange) -> None:
    user = client(exchange)
    assert user.first().decode() == exchange.first
    assert user.final(exchange.challenge.encode()).decode() == exchange.final
    user.verify(exchange.last.encode())


def test_commas_and_equals_signs_in_a_name_are_escaped() -> None:
    assert ScramClient("sha256", "a=b,c", "", "nonce").first() == b"n,,n=a=3Db=2Cc,r=nonce"


def test_a_server_that_does_not_know_the_password_is_refused() -> None:
    user = client(RFC_7677, password="other")
    user.final(RFC_7677.challenge.encode())
    with pytest.raises(AuthenticationError, match="does not know this user's password"):
        user.verify(RFC_7677.last.encode())


def test_the_servers_error_is_raised() -> None:
    user = client(RFC_7677)
    user.final(RFC_7677.challenge.encode())
    with pytest.raises(AuthenticationError, match="the broker refuses: invalid-proof"):
        user.verify(b"e=invalid-proof")


@pytest.mark.parametrize(
    ("challenge", "message"),
    [
        (b"", "belongs to another exchange"),
        (b"\xff\xfe", "is not SCRAM"),
        (b"r=rOprNGfwEbeRWgbNEkqO-server,s=not base 64,i=4096", "is not SCRAM"),
        (b"r=other-nonce,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "belongs to another exchange"),
        (b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "belongs to another exchange"),
        (b"r=rOprNGfwEbeRWgbNEkqO-server,i=4096", "belongs to another exchange"),
        (b"r=rOprNGfwEbeRWgbNEkqO-server,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4095", "4095 iterations"),
        (b"r=rOprNGfwEbeRWgbNEkqO-server,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=-1", "asks for -1 iterations"),
        (b"r=rOprNGfwEbeRWgbNEkqO-server,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=" + b"9" * 5000, "9999999999 iter"),
        (b"m=new,r=rOprNGfwEbeRWgbNEkqO-server,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "an unknown extension"),
    ],
)
def test_an_invalid_challenge_is_refused(challenge: bytes, message: str) -> None:
    with pytest.raises(AuthenticationError, match=message):
        client(RFC_7677).final(challenge)


def test_too_many_iterations_are_refused() -> None:
    challenge = f"r=rOprNGfwEbeRWgbNEkqO-server,s=W22ZaJ0SNY7soEsUEjb6gQ==,i={ITERATIONS_MAX + 1}"
    with pytest.raises(AuthenticationError, match="iterations, not 4096 to 1000000"):
        client(RFC_7677).final(challenge.encode())


def test_leading_zeros_do_not_hide_a_large_number_of_iterations() -> None:
    challenge = "r=rOprNGfwEbeRWgbNEkqO-server,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=0000004096000000"
    with pytest.raises(AuthenticationError, match="iterations, not 4096 to 1000000"):
        client(RFC_7677).final(challenge.encode())
