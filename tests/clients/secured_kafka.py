"""An Apache Kafka with authentication, with and without TLS, and the certificates that it accepts.

It has a listener of every kind beside the plain one of `ApacheKafka`. SASL_PLAINTEXT ends SCRAM-SHA-256
sessions after `SESSION_MS`; SSL demands a certificate of the client.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import trustme
from benchmarks.brokers.apache_kafka import ApacheKafka
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from tests.clients.broker_process import TEST_SETTINGS, reserved_port
from tests.clients.cluster import confluent_admin

HOST: Final = "localhost"
USER, PASSWORD = "alice", "s=cr,et"
KEY_PASSWORD = "key secret"
SESSION_MS: Final = 10_000
"""A client renews its session when a fifth of it is left: two seconds, also for a busy machine."""

Settings = dict[str, str]

_SASL: Final = "org.apache.kafka.common.security"
_LISTENERS: Final = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")


class Certificates:
    """An authority and the certificates that it has signed, as files in PEM format."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self._authority = trustme.CA()
        self._directory = directory
        self.authority = directory / "ca.pem"
        self._authority.cert_pem.write_to_path(str(self.authority))
        self.stranger = directory / "stranger.pem"
        """An authority without signed certificates."""
        trustme.CA().cert_pem.write_to_path(str(self.stranger))
        self.client, self.client_key = self._issue("client", KEY_PASSWORD)

    def broker(self, host: str) -> Path:
        """Key and certificate of a broker on this host, in one file as Kafka requires."""
        certificate, key = self._issue(host, None)
        both = self._directory / f"{host}-both.pem"
        both.touch(mode=0o600)
        both.write_bytes(key.read_bytes() + certificate.read_bytes())
        return both

    def _issue(self, name: str, password: str | None) -> tuple[Path, Path]:
        issued = self._authority.issue_cert(name)
        certificate, key = self._directory / f"{name}.pem", self._directory / f"{name}.key.pem"
        certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        encryption = NoEncryption() if password is None else BestAvailableEncryption(password.encode())
        private_key = load_pem_private_key(issued.private_key_pem.bytes(), None)
        key.write_bytes(private_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))
        return certificate, key


class SecuredKafka(ApacheKafka):
    """Knows `USER` with `PASSWORD`, by PLAIN and by SCRAM."""

    def __init__(self, directory: Path, certificates: Certificates) -> None:
        super().__init__(directory, TEST_SETTINGS)
        self._certificates = certificates
        self.ports = {listener: reserved_port() for listener in _LISTENERS}

    def at(self, listener: str) -> str:
        """The address of one of its listeners."""
        return f"{HOST}:{self.ports[listener]}"

    def add_user(self) -> None:
        """Create the SCRAM credentials of `USER`. A request may change one mechanism of a user."""
        admin: Any = confluent_admin.AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        for mechanism in ("SCRAM_SHA_256", "SCRAM_SHA_512"):
            info = confluent_admin.ScramCredentialInfo(confluent_admin.ScramMechanism[mechanism], 4096)
            user = confluent_admin.UserScramCredentialUpsertion(USER, info, PASSWORD.encode())
            admin.alter_user_scram_credentials([user])[USER].result()

    def _settings(self) -> dict[str, object]:
        plain = super()._settings()
        own = ",".join(f"{name}://{HOST}:{port}" for name, port in self.ports.items())
        protocols = ",".join(f"{name}:{name}" for name in ("PLAINTEXT", *_LISTENERS))
        return {
            **plain,
            "listeners": f"{plain['listeners']},{own}",
            "advertised.listeners": f"{plain['advertised.listeners']},{own}",
            "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,{protocols}",
            **self._tls_settings(),
            **_sasl_settings(),
        }

    def _tls_settings(self) -> Mapping[str, object]:
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self._certificates.broker(HOST),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self._certificates.authority,
            "listener.name.ssl.ssl.client.auth": "required",
        }


def _sasl_settings() -> Mapping[str, object]:
    settings: dict[str, object] = {"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"}
    for listener in ("sasl_plaintext", "sasl_ssl"):
        name = f"listener.name.{listener}"
        plain = f'{_SASL}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
        settings[f"{name}.plain.sasl.jaas.config"] = plain
        for mechanism in ("scram-sha-256", "scram-sha-512"):
            scram = f"{_SASL}.scram.ScramLoginModule required;"
            settings[f"{name}.{mechanism}.sasl.jaas.config"] = scram
    settings["listener.name.sasl_plaintext.scram-sha-256.connections.max.reauth.ms"] = SESSION_MS
    # A mechanism that SASL_SSL does not offer, for a client to request.
    settings["listener.name.sasl_ssl.sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-512"
    return settings


class Secured(NamedTuple):
    """The broker, and the settings of its clients."""

    kafka: SecuredKafka
    certificates: Certificates

    def settings(self, protocol: str, **changes: str | None) -> Settings:
        """Settings that give access to the listener of this protocol, with changes; `__` stands for a dot."""
        settings: dict[str, str | None] = {"security__protocol": protocol}
        if protocol.startswith("SASL"):
            settings |= {
                "sasl__mechanism": "SCRAM-SHA-512",
                "sasl__username": USER,
                "sasl__password": PASSWORD,
            }
        if protocol.endswith("SSL"):
            settings |= {"ssl__ca__location": str(self.certificates.authority)}
        if protocol == "SSL":
            settings |= {
                "ssl__certificate__location": str(self.certificates.client),
                "ssl__key__location": str(self.certificates.client_key),
                "ssl__key__password": KEY_PASSWORD,
            }
        settings |= changes
        return {name.replace("__", "."): value for name, value in settings.items() if value is not None}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A running broker of this kind."""
    directory = tmp_path_factory.mktemp("secured")
    certificates = Certificates(directory / "certificates")
    kafka = SecuredKafka(directory / "kafka", certificates)
    try:
        kafka.start()
        kafka.add_user()
        yield Secured(kafka, certificates)
    finally:
        kafka.kill()
