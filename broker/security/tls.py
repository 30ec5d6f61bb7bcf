"""The TLS of one listener (TLS 1.2 and 1.3, by OpenSSL).

The keys and certificates can be replaced while the broker runs: new connections use the new ones, and open
connections go on. If the new ones cannot be used, the old ones stay in use.
"""

from __future__ import annotations

import os
import ssl
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from barnabas.broker.security.distinguished_name import distinguished_name
from barnabas.broker.security.errors import SecuritySettingError
from barnabas.broker.security.key_store import KeyStore, StoreSettings, read_key_store, read_trust_store

PROTOCOLS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
"""The served protocols by Kafka's names; all older ones are insecure (RFC 8996)."""

CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
"""The values of ssl.client.auth."""

_TLS_1_3_SUITES: Final = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")


_COSTLY_STEP: Final = 2
"""The step of a handshake that signs: the first one only finds that nothing was received yet. A client can
make a later one costly, too, by a first message that the server cannot use (RFC 8446, section 4.1.4).
"""


class TimedObject(ssl.SSLObject):
    """One connection's TLS, which reports the processor time of each step of its handshake."""

    _step_count = 0

    def do_handshake(self) -> None:
        context = self.context
        assert isinstance(context, ServerContext)
        if self._step_count >= _COSTLY_STEP and context.is_overdrawn():
            raise ssl.SSLError("handshakes have taken too much time")
        began = time.thread_time()
        try:
            super().do_handshake()
        finally:
            self._step_count += 1
            if context.on_step is not None:
                context.on_step(time.thread_time() - began, self._step_count == _COSTLY_STEP)


class ServerContext(ssl.SSLContext):
    """The keys and rules of a listener's handshakes."""

    sslobject_class = TimedObject
    on_step: Callable[[float, bool], None] | None = None
    """Called after each step of a handshake, with its seconds, and whether it is the one that signs."""
    is_overdrawn: Callable[[], bool] = staticmethod(bool)
    """Whether a handshake must end that has a costly step again."""


class TlsSettings(NamedTuple):
    """The values of a listener's settings."""

    key_store: StoreSettings
    trust_store: StoreSettings
    client_auth: str
    protocols: Sequence[str]
    cipher_suites: Sequence[str]
    """By their names in Java; empty for OpenSSL's default."""

    @property
    def files(self) -> list[str]:
        """The files that hold keys or certificates."""
        return [store.location for store in (self.key_store, self.trust_store) if store.location is not None]


class ServerTls:
    """The context for new connections of one listener; raises `SecuritySettingError` if there is none."""

    def __init__(self, settings: TlsSettings, now: Callable[[], datetime]) -> None:
        self._now = now
        self.replace(settings)

    def replace(self, settings: TlsSettings) -> None:
        """Use these settings, with the files as they are now. If that raises, nothing has changed."""
        state_of_files = _state_of(settings.files)
        self.context, self.expires = make_context(settings, self._now())
        self.settings, self._state_of_files = settings, state_of_files

    def reload_changed_files(self) -> bool:
        """If a file has changed since the last look, use its new content. Returns whether one has. Raises
        `SecuritySettingError` once for each change that cannot be used.
        """
        state_of_files = _state_of(self.settings.files)
        if state_of_files == self._state_of_files:
            return False
        self._state_of_files = state_of_files
        self.replace(self.settings)
        return True


def make_context(settings: TlsSettings, now: datetime) -> tuple[ServerContext, datetime]:
    """The context, and the time at which its certificate expires."""
    key_store = read_key_store(settings.key_store)
    if key_store.expires <= now:
        raise SecuritySettingError(
            f"{settings.key_store.prefix}*: the certificate expired on {key_store.expires:%Y-%m-%d %H:%M} UTC"
        )
    context = ServerContext(ssl.PROTOCOL_TLS_SERVER)
    if not settings.protocols:
        raise SecuritySettingError("ssl.enabled.protocols is empty")
    versions = [PROTOCOLS[name] for name in settings.protocols]
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    # A client could make the server compute handshakes for ever. Kafka's clients never ask for it.
    context.options |= ssl.OP_NO_RENEGOTIATION
    _choose_suites(context, settings)
    _load_chain(context, key_store, settings.key_store)
    context.verify_mode = CLIENT_AUTH[settings.client_auth]
    if settings.trust_store.is_given:
        context.load_verify_locations(cadata=read_trust_store(settings.trust_store))
        # As in Java, any certificate in the trust store is trusted by itself.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    elif context.verify_mode is not ssl.CERT_NONE:
        raise SecuritySettingError(
            f"ssl.client.auth={settings.client_auth} needs {settings.trust_store.prefix}location or "
            f"{settings.trust_store.prefix}certificates: the authorities of the clients' certificates"
        )
    return context, key_store.expires


def peer_name(connected: ssl.SSLObject) -> str | None:
    """The distinguished name in the certificate at the other end; None if it has shown none."""
    certificate = connected.getpeercert(binary_form=True)
    if certificate is None:
        return None
    from cryptography import x509

    return distinguished_name(x509.load_der_x509_certificate(certificate).subject.public_bytes())


def _load_chain(context: ssl.SSLContext, key_store: KeyStore, settings: StoreSettings) -> None:
    """OpenSSL reads a key only from a file: this one is readable by its owner alone, and deleted at once."""
    try:
        descriptor, name = tempfile.mkstemp(prefix="barnabas-", suffix=".pem")
    except OSError as error:
        raise SecuritySettingError(f"no temporary file can be made for the key: {error.strerror}") from None
    path = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(key_store.pem)
        # With a function OpenSSL asks for the password only if the key is encrypted, and never a terminal.
        context.load_cert_chain(path, password=lambda: key_store.password)
    except (OSError, ValueError) as error:  # ValueError: the password is too long
        reason = str(getattr(error, "reason", None) or error).lower().replace("_", " ")
        raise SecuritySettingError(
            f"{settings.prefix}*: the key and the certificate cannot be used together, or ssl.key.password "
            f"is not the key's password ({reason})"
        ) from None
    finally:
        path.unlink()


def _choose_suites(context: ssl.SSLContext, settings: TlsSettings) -> None:
    """Sets the allowed cipher suites; OpenSSL has its own names for those of TLS 1.2."""
    chosen = settings.cipher_suites
    if not chosen:
        return
    older = [name for name in chosen if name not in _TLS_1_3_SUITES]
    left_out = [name for name in _TLS_1_3_SUITES if name not in chosen]
    if left_out and context.maximum_version is ssl.TLSVersion.TLSv1_3:
        raise SecuritySettingError(
            f"ssl.cipher.suites leaves out {', '.join(left_out)}, which OpenSSL offers with TLS 1.3 in any "
            "case. Name them, or set ssl.enabled.protocols=TLSv1.2"
        )
    for name in older:
        try:
            context.set_ciphers(_openssl_name(name))
        except ssl.SSLError:
            raise SecuritySettingError(f"ssl.cipher.suites: OpenSSL has no cipher suite {name}") from None
    if older:
        context.set_ciphers(":".join(map(_openssl_name, older)))


def _openssl_name(name: str) -> str:
    """OpenSSL's name of a suite of TLS 1.2: `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256` is
    `ECDHE-RSA-AES128-GCM-SHA256`.
    """
    exchange, _, cipher = name.removeprefix("TLS_").partition("_WITH_")
    exchange = "" if exchange == "RSA" else f"{exchange}-"
    for size in ("128", "256"):
        cipher = cipher.replace(f"AES_{size}_CBC", f"AES{size}").replace(f"AES_{size}", f"AES{size}")
    return f"{exchange}{cipher}".replace("_", "-").replace("CHACHA20-POLY1305-SHA256", "CHACHA20-POLY1305")


def _state_of(paths: Sequence[str]) -> list[tuple[int, int, int] | None]:
    """What changes when a file is written or replaced; None for a missing file."""
    states: list[tuple[int, int, int] | None] = []
    for path in paths:
        try:
            state = Path(path).stat()
        except OSError:
            states.append(None)
        else:
            states.append((state.st_ino, state.st_mtime_ns, state.st_size))
    return states


def utc_now() -> datetime:
    return datetime.now(UTC)
