"""TLS for a `Security`: the context, and the failures that a retry cannot cure.

TLS 1.2 or later. The broker's certificate is always verified; only the comparison of the host name with the
certificate's can be switched off (`ssl.endpoint.identification.algorithm` = none).
"""

from __future__ import annotations

import ssl
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeGuard

from barnabas.client.errors import SecurityOptionError
from barnabas.client.network.security import Security

CONTEXTS_MAX: Final = 16
"""Contexts in the cache, because loading the system's authorities takes longer than a handshake."""

_PASSES: Final = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
"""The peer closed the connection: it may be starting or stopping."""


@lru_cache(CONTEXTS_MAX)
def tls_context(security: Security) -> ssl.SSLContext:
    """The context for all connections. Raises `SecurityOptionError` for invalid certificates or keys."""
    try:
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cadata=security.ca_pem)
    except ssl.SSLError as error:
        raise SecurityOptionError("ssl.ca.location", f"holds no certificates: {reason(error)}") from error
    context.check_hostname = security.checks_hostname
    if security.certificate_pem is not None:
        _load_certificate(context, security)
    return context


def is_refusal(error: BaseException | None) -> TypeGuard[ssl.SSLError]:
    """Whether one side refused the other, and would refuse it again."""
    return isinstance(error, ssl.SSLError) and not isinstance(error, _PASSES)


def reason(error: BaseException) -> str:
    """The cause, without the name of OpenSSL's source file."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the broker's certificate is not trusted: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    return str(error)


def _load_certificate(context: ssl.SSLContext, security: Security) -> None:
    """OpenSSL reads a key only from a file: this one is readable by its owner alone and deleted at once."""
    with tempfile.TemporaryDirectory(prefix="barnabas-") as directory:
        path = Path(directory) / "chain.pem"
        path.touch(mode=0o600)
        path.write_text(f"{security.certificate_pem}\n{security.key_pem or ''}")
        try:
            # An empty password keeps OpenSSL from asking for one on the terminal.
            context.load_cert_chain(path, password=security.key_password or "")
        except ssl.SSLError as error:
            raise SecurityOptionError(
                "ssl.certificate.location", f"certificate and key cannot be used: {reason(error)}"
            ) from error
