"""How brokers are spoken to: in the clear or over TLS, as nobody or with a name and a password.

`parse_security` makes a `Security` of settings that have Kafka's names (those of librdkafka, where Kafka has
them only inside `sasl.jaas.config`). Files are read there, once: what comes out needs none of them any more,
so it can be pickled and used on a machine that does not have them. Whoever holds it holds the secrets; they
are in no representation, log line or error message of this package.

How it is put to use: `tls`, `sasl`. Not known: Kerberos, OAuth, delegation tokens, revocation lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, cast, get_args

from barnabas.client.errors import SecurityOptionError
from barnabas.protocol.nearest_name import nearest_name

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]

PEM_BYTES_MAX: Final = 1024 * 1024
"""The longest certificate or key file that is read."""

_PROTOCOL: Final = "security.protocol"
_MECHANISM: Final = "sasl.mechanism"
_USERNAME: Final = "sasl.username"
_PASSWORD: Final = "sasl.password"
_CA: Final = "ssl.ca.location"
_CERTIFICATE: Final = "ssl.certificate.location"
_KEY: Final = "ssl.key.location"
_KEY_PASSWORD: Final = "ssl.key.password"
_HOSTNAME: Final = "ssl.endpoint.identification.algorithm"

_SASL_NAMES: Final = (_MECHANISM, _USERNAME, _PASSWORD)
_TLS_NAMES: Final = (_CA, _CERTIFICATE, _KEY, _KEY_PASSWORD, _HOSTNAME)
_NAMES: Final = (_PROTOCOL, *_SASL_NAMES, *_TLS_NAMES)


@dataclass(frozen=True, kw_only=True)
class Security:
    """What `parse_security` found. The default is neither encrypted nor authenticated."""

    protocol: Protocol = "PLAINTEXT"
    mechanism: Mechanism = "SCRAM-SHA-512"
    username: str = ""
    password: str = field(default="", repr=False)
    ca_pem: str | None = field(default=None, repr=False)
    """Certificates of the authorities that are trusted; None for those that the system trusts."""
    certificate_pem: str | None = field(default=None, repr=False)
    """The client's own certificate with its chain, and its key unless `key_pem` has that."""
    key_pem: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    checks_hostname: bool = True
    """Whether the broker's certificate has to name the host that was connected to."""

    @property
    def uses_tls(self) -> bool:
        return self.protocol in {"SSL", "SASL_SSL"}

    @property
    def uses_sasl(self) -> bool:
        return self.protocol in {"SASL_PLAINTEXT", "SASL_SSL"}


PLAINTEXT: Final = Security()


def parse_security(settings: Mapping[str, str]) -> Security:
    """What settings such as `{"security.protocol": "SASL_SSL", ...}` come to; see docs/asyncio-client.md.

    Raises `SecurityOptionError`, which names the setting: an unknown or malformed one, a file that cannot be
    read, a setting that is needed, and one that would have no effect with this protocol.
    """
    given = _Given(settings)
    protocol = cast("Protocol", given.choice(_PROTOCOL, get_args(Protocol), "PLAINTEXT"))
    security = Security(
        protocol=protocol,
        mechanism=cast("Mechanism", given.choice(_MECHANISM, get_args(Mechanism), "SCRAM-SHA-512")),
        username=settings.get(_USERNAME, ""),
        password=settings.get(_PASSWORD, ""),
        ca_pem=given.pem(_CA),
        certificate_pem=given.pem(_CERTIFICATE),
        key_pem=given.pem(_KEY),
        key_password=settings.get(_KEY_PASSWORD),
        checks_hostname=given.choice(_HOSTNAME, ("https", "none", ""), "https") == "https",
    )
    given.check_sasl(used=security.uses_sasl)
    given.check_tls(used=security.uses_tls)
    return security


class _Given:
    """The settings as they were given."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = settings
        for name in settings:
            if name not in _NAMES:
                near = nearest_name(name, _NAMES)
                hint = f"did you mean {near}?" if near else f"there are {', '.join(_NAMES)}"
                raise SecurityOptionError(name, f"there is no such setting; {hint}")

    def choice(self, name: str, choices: tuple[str, ...], default: str) -> str:
        """One of several words, case ignored."""
        value = self._settings.get(name, default)
        for choice in choices:
            if choice.casefold() == value.strip().casefold():
                return choice
        wanted = " or ".join(filter(None, choices))
        raise SecurityOptionError(name, f"{value!r} is not {wanted}")

    def pem(self, name: str) -> str | None:
        """The text of the file that is named."""
        path = self._settings.get(name)
        if path is None:
            return None
        try:
            # What is not ASCII can only be a comment, and OpenSSL's reader takes none of it.
            with Path(path).open(encoding="ascii", errors="ignore") as file:
                text = file.read(PEM_BYTES_MAX + 1)
        except OSError as error:
            raise SecurityOptionError(name, f"{path} cannot be read: {error.strerror}") from error
        if "-----BEGIN " not in text or len(text) > PEM_BYTES_MAX:
            raise SecurityOptionError(
                name, f"{path} is not in PEM format, or longer than {PEM_BYTES_MAX} bytes"
            )
        return text

    def check_sasl(self, *, used: bool) -> None:
        """Name and password are there if they are used, and nothing is if not."""
        if not used:
            self._refuse_useless(_SASL_NAMES, "SASL_PLAINTEXT or SASL_SSL")
            return
        for name in _SASL_NAMES:
            if not self._settings.get(name):
                raise SecurityOptionError(name, f"is needed with {_PROTOCOL} {self._settings[_PROTOCOL]}")
            if "\0" in self._settings[name]:
                raise SecurityOptionError(name, "has a null character in it")

    def check_tls(self, *, used: bool) -> None:
        if not used:
            self._refuse_useless(_TLS_NAMES, "SSL or SASL_SSL")
        for name, needed in ((_KEY, _CERTIFICATE), (_KEY_PASSWORD, _CERTIFICATE)):
            if name in self._settings and needed not in self._settings:
                raise SecurityOptionError(needed, f"is needed with {name}")

    def _refuse_useless(self, names: tuple[str, ...], protocols: str) -> None:
        """A setting without effect hides that nothing is encrypted, or nobody authenticated."""
        for name in names:
            if name in self._settings:
                raise SecurityOptionError(name, f"has an effect only with {_PROTOCOL} {protocols}")
