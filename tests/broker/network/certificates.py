"""Keys and certificates for tests of TLS, made anew by a test authority."""

from __future__ import annotations

import ssl
from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509 import load_pem_x509_certificates

PASSWORD = "a password of a key store"


class Authority:
    """An authority with files in a directory; the server's name is 127.0.0.1."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.root = trustme.CA()
        self.trusted = directory / "trusted.pem"
        self.root.cert_pem.write_to_path(str(self.trusted))

    def issue(self, name: str = "127.0.0.1", *, common_name: str | None = None) -> trustme.LeafCert:
        return self.root.issue_cert(name, common_name=common_name, key_type=trustme.KeyType.ECDSA)

    def write_pem(self, leaf: trustme.LeafCert, name: str = "server.pem") -> Path:
        """A file with key and certificates."""
        path = self.directory / name
        path.touch(mode=0o600)
        path.write_bytes(leaf.private_key_and_cert_chain_pem.bytes())
        return path

    def write_pkcs12(self, leaf: trustme.LeafCert, name: str = "server.p12") -> Path:
        key = load_pem_private_key(leaf.private_key_pem.bytes(), None)
        assert isinstance(key, EllipticCurvePrivateKey)
        chain = load_pem_x509_certificates(b"".join(pem.bytes() for pem in leaf.cert_chain_pems))
        path = self.directory / name
        path.touch(mode=0o600)
        path.write_bytes(
            pkcs12.serialize_key_and_certificates(
                b"server", key, chain[0], chain[1:], BestAvailableEncryption(PASSWORD.encode())
            )
        )
        return path

    def encrypted_key(self, leaf: trustme.LeafCert) -> str:
        key = load_pem_private_key(leaf.private_key_pem.bytes(), None)
        encryption: serialization.KeySerializationEncryption = BestAvailableEncryption(PASSWORD.encode())
        return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()

    def client_context(
        self, certificate: trustme.LeafCert | None = None, version: ssl.TLSVersion | None = None
    ) -> ssl.SSLContext:
        """The context of a client that trusts this authority."""
        context = ssl.create_default_context()
        context.load_verify_locations(cadata=self.root.cert_pem.bytes().decode())
        if version is not None:
            context.minimum_version = context.maximum_version = version
        if certificate is not None:
            context.load_cert_chain(self.write_pem(certificate, "client.pem"))
        return context


def chain_of(leaf: trustme.LeafCert) -> str:
    return b"".join(pem.bytes() for pem in leaf.cert_chain_pems).decode()
