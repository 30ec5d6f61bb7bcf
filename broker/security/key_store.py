"""Reads private keys and certificates as Kafka's settings name them: PEM, in files or inline, and PKCS#12.

A store in Java's own format (JKS) is refused with the command that converts it: OpenSSL cannot read it.
"""

from __future__ import annotations

import os
import secrets
import stat
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.security.errors import SecuritySettingError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
    from cryptography.x509 import Certificate

STORE_BYTES_MAX: Final = 1024 * 1024
"""The largest file of keys or certificates that is read."""

_JAVA_MAGICS: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
"""The beginnings of stores in the formats JKS and JCEKS."""

_PEM: Final = "PEM"
_BEGIN: Final = b"-----BEGIN "


class StoreSettings(NamedTuple):
    """Where a key store or a trust store is.

    `prefix` begins its settings (`ssl.keystore.` or `ssl.truststore.`) for error texts. `location` is a file;
    `certificates` and `key` are texts in PEM, instead of a file. `key_password` is None if the key is not
    encrypted on its own.
    """

    prefix: str
    type: str
    location: str | None = None
    password: str | None = None
    certificates: str | None = None
    key: str | None = None
    key_password: str | None = None

    def __repr__(self) -> str:
        return f"the store of {self.prefix}*"  # without the secrets

    @property
    def has_key(self) -> bool:
        """Whether it is a key store."""
        return self.prefix == "ssl.keystore."

    @property
    def is_given(self) -> bool:
        return any((self.location, self.certificates, self.key))


class KeyStore(NamedTuple):
    """A private key with the certificates that prove it, in the form that OpenSSL reads."""

    pem: bytes
    """The certificate, its chain, and the encrypted or plain key."""
    password: str
    """Decrypts the key; empty if it is not encrypted."""
    expires: datetime
    """When the certificate expires."""


def read_key_store(settings: StoreSettings) -> KeyStore:
    """Raises `SecuritySettingError` that names the setting to change."""
    from cryptography import x509  # few brokers use TLS

    if not settings.is_given:
        raise SecuritySettingError(
            f"TLS needs {settings.prefix}location, or {settings.prefix}key with "
            f"{settings.prefix}certificate.chain"
        )
    if settings.location is not None and not _is_pem(settings):
        return _read_pkcs12(settings, _content(settings))
    if settings.location is not None:
        pem = _content(settings)
        name = f"{settings.prefix}location"
    else:
        name = f"{settings.prefix}certificate.chain"
        if settings.certificates is None or settings.key is None:
            raise SecuritySettingError(f"{settings.prefix}key and {name} must be given together")
        pem = f"{settings.certificates}\n{settings.key}\n".encode()
    if b"PRIVATE KEY-----" not in pem:
        raise SecuritySettingError(f"{name} has no private key")
    try:
        chain = x509.load_pem_x509_certificates(pem)
    except ValueError:
        raise SecuritySettingError(f"{name} has no certificate that can be read") from None
    return KeyStore(pem, settings.key_password or "", chain[0].not_valid_after_utc)


def read_trust_store(settings: StoreSettings) -> str:
    """The trusted certificates in PEM. Raises `SecuritySettingError` that names the setting to change."""
    from cryptography import x509

    if settings.location is not None and not _is_pem(settings):
        name = f"{settings.prefix}location"
        chain = _certificates(settings, _content(settings))
    else:
        name = f"{settings.prefix}{'certificates' if settings.location is None else 'location'}"
        pem = (settings.certificates or "").encode() if settings.location is None else _content(settings)
        try:
            chain = x509.load_pem_x509_certificates(pem)
        except ValueError:
            raise SecuritySettingError(f"{name} has no certificate that can be read") from None
    if not chain:
        raise SecuritySettingError(f"{name} has no certificates")
    return b"".join(map(_pem_of, chain)).decode()


def _is_pem(settings: StoreSettings) -> bool:
    return settings.type.upper() == _PEM


def _content(settings: StoreSettings) -> bytes:
    name, path = f"{settings.prefix}location", str(settings.location)
    try:
        # Without blocking, because the path may be that of a pipe.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            mode = os.fstat(descriptor).st_mode
            content = file.read(STORE_BYTES_MAX + 1) if stat.S_ISREG(mode) else None
    except OSError as error:
        raise SecuritySettingError(f"{name}: {path} cannot be read: {error.strerror}") from None
    if content is None:
        raise SecuritySettingError(f"{name}: {path} is no file")
    if settings.has_key and mode & stat.S_IROTH:
        raise SecuritySettingError(
            f"{name}: every user can read {path}, and so its key; do: chmod o-r {path}"
        )
    if len(content) > STORE_BYTES_MAX:
        raise SecuritySettingError(f"{name}: {path} is longer than {STORE_BYTES_MAX} bytes")
    has_pem = _BEGIN in content
    if _is_pem(settings) and not has_pem:
        raise SecuritySettingError(f"{name}: {path} is not PEM; set {settings.prefix}type to PKCS12")
    if not _is_pem(settings) and has_pem:
        raise SecuritySettingError(f"{name}: {path} is PEM; set {settings.prefix}type to PEM")
    if content[:4] in _JAVA_MAGICS:
        raise SecuritySettingError(
            f"{name}: {path} is in the format JKS, which only Java reads. Convert it with: keytool "
            f"-importkeystore -srckeystore {path} -destkeystore {Path(path).with_suffix('.p12')} "
            f"-deststoretype PKCS12; and set {settings.prefix}type to PKCS12"
        )
    return content


def _read_pkcs12(settings: StoreSettings, content: bytes) -> KeyStore:
    from cryptography.hazmat.primitives import serialization

    key, certificate, others = _load_pkcs12(settings, content)
    if key is None or certificate is None:
        raise SecuritySettingError(f"{settings.prefix}location: {settings.location} has no private key")
    password = secrets.token_urlsafe()
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(password.encode()),
    )
    chain = _in_order(certificate, others)
    return KeyStore(b"".join((*map(_pem_of, chain), encrypted)), password, certificate.not_valid_after_utc)


def _in_order(certificate: Certificate, others: list[Certificate]) -> list[Certificate]:
    """The certificate, followed by each one's issuer, as far as they are in the store in any order."""
    chain, by_subject = [certificate], {other.subject: other for other in others}
    while (issuer := by_subject.pop(chain[-1].issuer, None)) is not None:
        chain.append(issuer)
    return chain


def _certificates(settings: StoreSettings, content: bytes) -> list[Certificate]:
    _, certificate, others = _load_pkcs12(settings, content)
    return [*filter(None, (certificate,)), *others]


def _load_pkcs12(
    settings: StoreSettings, content: bytes
) -> tuple[PrivateKeyTypes | None, Certificate | None, list[Certificate]]:
    from cryptography.hazmat.primitives.serialization import pkcs12

    password = None if settings.password is None else settings.password.encode()
    try:
        return pkcs12.load_key_and_certificates(content, password)
    except ValueError:
        raise SecuritySettingError(
            f"{settings.prefix}location: {settings.location} is not PKCS#12, or {settings.prefix}password is "
            "not its password"
        ) from None


def _pem_of(certificate: Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)
