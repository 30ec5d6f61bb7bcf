"""TLS and SASL of Barnabas's client against Apache Kafka: valid credentials get access, and each invalid one
gets a clear error.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

import pytest

from barnabas.client import (
    AuthenticationError,
    BrokerUnavailableError,
    ConsumerError,
    SecurityError,
    ShareConsumer,
    parse_security,
)
from barnabas.client.cluster.metadata import metadata_request
from barnabas.client.network.address import parse_bootstrap
from barnabas.client.network.connection import Connection
from barnabas.protocol.client.consumer_apis import METADATA
from tests.clients.cluster import Cluster, numbered
from tests.clients.polling import SECONDS_MAX
from tests.clients.secured_kafka import PASSWORD, SESSION_MS, Secured, Settings, secured

__all__ = ["secured"]

pytestmark = [pytest.mark.barnabas, pytest.mark.clients]

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
CONNECT_MS = round(SECONDS_MAX * 1000)
GIVE_UP_MS = 5_000
"""Where a broker closes each connection without a word, the client tries again for this time."""


async def connect(address: str, settings: Mapping[str, str]) -> Connection:
    (broker,) = parse_bootstrap(address)
    security = parse_security(settings)
    return await Connection.open(broker, client_id="test", request_timeout_ms=CONNECT_MS, security=security)


async def refusal(
    address: str, settings: Mapping[str, str], connect_timeout_ms: int = CONNECT_MS
) -> ConsumerError:
    """The error that a consumer's start raises."""
    security = parse_security(settings)
    consumer = ShareConsumer(
        address, group="nobody", topics=["none"], security=security, connect_timeout_ms=connect_timeout_ms
    )
    with pytest.raises(ConsumerError) as refused:
        await consumer.start()
    assert PASSWORD not in str(refused.value)
    return refused.value


async def brokers(connection: Connection) -> int:
    return len((await connection.ask(METADATA, metadata_request([]))).brokers)


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_a_user_with_the_right_password_has_access(secured: Secured, mechanism: str) -> None:
    settings = secured.settings("SASL_PLAINTEXT", sasl__mechanism=mechanism)
    connection = await connect(secured.kafka.at("SASL_PLAINTEXT"), settings)
    assert await brokers(connection) == 1
    connection.close()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
async def test_a_share_group_is_read_over_sasl_and_tls(secured: Secured, mechanism: str) -> None:
    cluster = Cluster(secured.kafka.address)
    topic, group = cluster.topic(), cluster.group()
    cluster.produce(topic, numbered(100))
    security = parse_security(secured.settings("SASL_SSL", sasl__mechanism=mechanism))
    address = secured.kafka.at("SASL_SSL")
    taken: list[str] = []
    async with ShareConsumer(address, group=group, topics=[topic], security=security) as consumer:
        while len(taken) < 100:
            for record in await consumer.poll():
                taken.append((record.value or b"").decode())
                record.accept()
        assert list((await consumer.commit()).values()) == [None]
    assert sorted(taken) == sorted(numbered(100))


async def test_a_client_certificate_has_access_where_one_is_required(secured: Secured) -> None:
    connection = await connect(secured.kafka.at("SSL"), secured.settings("SSL"))
    assert await brokers(connection) == 1
    connection.close()


async def test_a_host_name_missing_in_the_certificate_is_accepted_if_configured(secured: Secured) -> None:
    address = f"127.0.0.1:{secured.kafka.ports['SASL_SSL']}"
    unchecked = secured.settings("SASL_SSL", ssl__endpoint__identification__algorithm="none")
    connection = await connect(address, unchecked)
    assert await brokers(connection) == 1
    connection.close()
    error = await refusal(address, secured.settings("SASL_SSL"))
    assert isinstance(error, SecurityError)
    assert "IP address mismatch" in str(error)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("wrong", [{"sasl__password": "guessed"}, {"sasl__username": "mallory"}])
async def test_a_wrong_password_is_one_error(secured: Secured, mechanism: str, wrong: Settings) -> None:
    settings = secured.settings("SASL_PLAINTEXT", sasl__mechanism=mechanism, **wrong)
    error = await refusal(secured.kafka.at("SASL_PLAINTEXT"), settings)
    assert isinstance(error, AuthenticationError)
    assert f"does not let {settings['sasl.username']} in" in str(error)
    assert "guessed" not in str(error)


async def test_a_mechanism_that_is_not_offered_is_one_error(secured: Secured) -> None:
    settings = secured.settings("SASL_SSL", sasl__mechanism="SCRAM-SHA-256")
    error = await refusal(secured.kafka.at("SASL_SSL"), settings)
    assert isinstance(error, AuthenticationError)
    assert "SCRAM-SHA-256 is not offered; the broker offers" in str(error)
    assert "SCRAM-SHA-512" in str(error)


async def test_an_authority_that_is_not_trusted_is_one_error(secured: Secured) -> None:
    for ca in (str(secured.certificates.stranger), None):
        error = await refusal(
            secured.kafka.at("SASL_SSL"), secured.settings("SASL_SSL", ssl__ca__location=ca)
        )
        assert isinstance(error, SecurityError)
        assert "certificate is not trusted" in str(error)


async def test_a_missing_certificate_is_one_error(secured: Secured) -> None:
    nothing = dict.fromkeys(("ssl__certificate__location", "ssl__key__location", "ssl__key__password"))
    error = await refusal(secured.kafka.at("SSL"), secured.settings("SSL", **nothing))
    assert isinstance(error, SecurityError)
    assert "certificate required" in str(error) or "bad certificate" in str(error)


async def test_plaintext_to_a_port_with_tls_is_one_error(secured: Secured) -> None:
    for listener in ("SSL", "SASL_SSL"):
        error = await refusal(secured.kafka.at(listener), {})
        assert isinstance(error, SecurityError)
        assert "speaks TLS; see security.protocol" in str(error)


async def test_tls_to_a_port_without_it_names_the_possible_causes(secured: Secured) -> None:
    error = await refusal(secured.kafka.address, secured.settings("SSL"), GIVE_UP_MS)
    assert isinstance(error, SecurityError | BrokerUnavailableError)
    assert "security.protocol" in str(error)


async def test_no_credentials_where_they_are_required_names_the_possible_causes(secured: Secured) -> None:
    error = await refusal(secured.kafka.at("SASL_PLAINTEXT"), {}, GIVE_UP_MS)
    assert isinstance(error, BrokerUnavailableError)
    assert "does it want TLS or SASL (security.protocol)?" in str(error)


async def test_credentials_where_none_are_used_are_one_error(secured: Secured) -> None:
    error = await refusal(secured.kafka.address, secured.settings("SASL_PLAINTEXT"))
    assert isinstance(error, AuthenticationError)
    assert "does not use SASL" in str(error)


async def test_a_session_that_ends_is_renewed_over_the_same_connection(secured: Secured) -> None:
    settings = secured.settings("SASL_PLAINTEXT", sasl__mechanism="SCRAM-SHA-256")
    connection = await connect(secured.kafka.at("SASL_PLAINTEXT"), settings)
    until = time.monotonic() + 1.2 * SESSION_MS / 1000
    while time.monotonic() < until:
        assert await asyncio.gather(*(brokers(connection) for _ in range(4))) == [1] * 4
    assert connection.is_open
    connection.close()
