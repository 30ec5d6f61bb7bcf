"""Unmodified clients at listeners with TLS and SASL: librdkafka, Java, kafka-python, aiokafka and our own."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer

from barnabas.client import ShareConsumer, parse_security
from tests.clients.broker_process import TEST_SETTINGS, BrokerProcess, reserved_port, started
from tests.clients.cluster import Cluster, confluent_admin
from tests.clients.secured_kafka import KEY_PASSWORD, PASSWORD, SESSION_MS, USER, Certificates
from tests.clients.tools import TOPICS, run_tool
from tests.clients.untyped_clients import aiokafka, kafka_python

pytestmark = [pytest.mark.barnabas, pytest.mark.clients]

HOST: Final = "localhost"


class Secured(NamedTuple):
    """A broker with a listener for TLS that demands a certificate, and one beside it that does not."""

    broker: BrokerProcess
    certificates: Certificates
    mutual_port: int
    port: int
    sasl_port: int
    sasl_ssl_port: int

    @property
    def mutual(self) -> str:
        return f"{HOST}:{self.mutual_port}"

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def sasl(self) -> str:
        return f"{HOST}:{self.sasl_port}"

    @property
    def sasl_ssl(self) -> str:
        return f"{HOST}:{self.sasl_ssl_port}"

    def librdkafka(self) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.mutual,
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.certificates.authority),
            "ssl.certificate.location": str(self.certificates.client),
            "ssl.key.location": str(self.certificates.client_key),
            "ssl.key.password": KEY_PASSWORD,
        }


@pytest.fixture(scope="module")
def secured(barnabas_command: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("secured")
    certificates = Certificates(directory / "certificates")
    plain, mutual, port, sasl, sasl_ssl = (reserved_port() for _ in range(5))
    listeners = (
        f"PLAINTEXT://127.0.0.1:{plain},MUTUAL://{HOST}:{mutual},SSL://{HOST}:{port},"
        f"SASL_PLAINTEXT://{HOST}:{sasl},SASL_SSL://{HOST}:{sasl_ssl}"
    )
    settings = {
        **TEST_SETTINGS,
        "listener.security.protocol.map": "MUTUAL:SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.broker(HOST)),
        "listener.name.mutual.ssl.client.auth": "required",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.authority),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.sasl_plaintext.connections.max.reauth.ms": str(SESSION_MS),
    }
    options = [f"--set=listeners={listeners}"]
    broker = BrokerProcess(barnabas_command, directory / "data", settings, options, plain)
    with started(broker):
        _add_user(broker.address)
        yield Secured(broker, certificates, mutual, port, sasl, sasl_ssl)


def _add_user(address: str) -> None:
    """A request may change one mechanism of a user."""
    admin: Any = confluent_admin.AdminClient({"bootstrap.servers": address, "log_level": 0})
    for mechanism in ("SCRAM_SHA_256", "SCRAM_SHA_512"):
        info = confluent_admin.ScramCredentialInfo(confluent_admin.ScramMechanism[mechanism], 4096)
        user = confluent_admin.UserScramCredentialUpsertion(USER, info, PASSWORD.encode())
        admin.alter_user_scram_credentials([user])[USER].result()


@pytest.fixture
def topic(secured: Secured) -> str:
    return Cluster(secured.broker.address).topic()


def test_librdkafka_with_a_client_certificate(secured: Secured, topic: str) -> None:
    producer = Producer(secured.librdkafka())
    values = [b"%d" % number * 1000 for number in range(500)]
    for value in values:
        producer.produce(topic, value)
    producer.flush()
    consumer = Consumer(
        {
            **secured.librdkafka(),
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "group.protocol": "consumer",
        }
    )
    consumer.subscribe([topic])
    received: list[Any] = []
    while len(received) < len(values):
        received += [message.value() for message in consumer.consume(100, 1.0)]
    consumer.close()
    assert received == values


def test_java_with_a_trust_store_in_pem(secured: Secured, topic: str, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SSL\nssl.truststore.type=PEM\n"
        f"ssl.truststore.location={secured.certificates.authority}\n"
    )
    listed = run_tool(TOPICS, "--bootstrap-server", secured.address, "--command-config", config, "--list")
    assert topic in listed.split()


def test_kafka_python(secured: Secured, topic: str) -> None:
    producer = kafka_python.KafkaProducer(
        bootstrap_servers=secured.address,
        security_protocol="SSL",
        ssl_cafile=str(secured.certificates.authority),
    )
    assert producer.send(topic, b"value").get().offset == 0
    producer.close()


async def test_aiokafka(secured: Secured, topic: str) -> None:
    context = ssl.create_default_context(cafile=str(secured.certificates.authority))
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=secured.address, security_protocol="SSL", ssl_context=context
    )
    await producer.start()
    sent = await producer.send_and_wait(topic, b"value")
    await producer.stop()
    assert sent.offset == 0


async def test_our_own_client(secured: Secured, topic: str) -> None:
    security = parse_security(
        {"security.protocol": "SSL", "ssl.ca.location": str(secured.certificates.authority)}
    )
    group = Cluster(secured.broker.address).group()
    Cluster(secured.broker.address).produce(topic, ["a", "b"])
    async with ShareConsumer(secured.address, group=group, topics=[topic], security=security) as consumer:
        received: list[bytes | None] = []
        while len(received) < 2:
            received += [record.value for record in await consumer.poll(timeout=1.0)]
    assert received == [b"a", b"b"]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
class TestMechanisms:
    def test_librdkafka(self, secured: Secured, topic: str, mechanism: str) -> None:
        errors: list[Any] = []
        producer = Producer(
            {
                "bootstrap.servers": secured.sasl,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": mechanism,
                "sasl.username": USER,
                "sasl.password": PASSWORD,
                "error_cb": errors.append,
            }
        )
        producer.produce(topic, b"value")
        assert producer.flush() == 0
        assert errors == []

    def test_java(self, secured: Secured, topic: str, mechanism: str, tmp_path: Path) -> None:
        module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
        config = tmp_path / "client.properties"
        config.write_text(
            "security.protocol=SASL_SSL\nssl.truststore.type=PEM\n"
            f"ssl.truststore.location={secured.certificates.authority}\nsasl.mechanism={mechanism}\n"
            f"sasl.jaas.config=org.apache.kafka.common.security.{module} required "
            f'username="{USER}" password="{PASSWORD}";\n'
        )
        listed = run_tool(
            TOPICS, "--bootstrap-server", secured.sasl_ssl, "--command-config", config, "--list"
        )
        assert topic in listed.split()

    def test_kafka_python(self, secured: Secured, topic: str, mechanism: str) -> None:
        producer = kafka_python.KafkaProducer(
            bootstrap_servers=secured.sasl,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            sasl_plain_username=USER,
            sasl_plain_password=PASSWORD,
        )
        assert producer.send(topic, b"value").get().offset == 0
        producer.close()

    async def test_aiokafka(self, secured: Secured, topic: str, mechanism: str) -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=secured.sasl,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            sasl_plain_username=USER,
            sasl_plain_password=PASSWORD,
        )
        await producer.start()
        assert (await producer.send_and_wait(topic, b"value")).offset == 0
        await producer.stop()

    async def test_our_own_client(self, secured: Secured, topic: str, mechanism: str) -> None:
        """Longer than a session."""
        settings = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": USER,
            "sasl.password": PASSWORD,
        }
        group = Cluster(secured.broker.address).group()
        async with ShareConsumer(
            secured.sasl, group=group, topics=[topic], security=parse_security(settings)
        ) as consumer:
            ends = asyncio.get_running_loop().time() + 1.3 * SESSION_MS / 1000
            while asyncio.get_running_loop().time() < ends:
                assert await consumer.poll(timeout=1.0) == []
            Cluster(secured.broker.address).produce(topic, ["a"])
            received: list[Any] = []
            while not received:
                received += await consumer.poll(timeout=1.0)
        assert [record.value for record in received] == [b"a"]
