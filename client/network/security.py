"""The settings for encryption and authentication of connections to brokers.

`parse_security` makes a `Security` from settings with Kafka's names (librdkafka's names where Kafka has them
only inside `sasl.jaas.config`). It reads the files once, so the result can be pickled and used on a machine
without them. A `Security` contains the secrets; they appear in no representation, log line or error message
of this package.

`tls` and `sasl` apply the settings. Not supported: Kerberos, OAuth, delegation tokens, revocation lists.
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
"""The longest certificate or key file accepted."""

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
    """The result of `parse_security`. The default has no encryption and no authentication."""

    protocol: Protocol = "PLAINTEXT"
    mechanism: Mechanism = "SCRAM-SHA-512"
    username: str = ""
    password: str = field(default="", repr=False)
    ca_pem: str | None = field(default=None, repr=False)
    """Certificates of the trusted authorities; None for those that the system trusts."""
    certificate_pem: str | None = field(default=None, repr=False)
    """The client's own certificate with its chain, and with its key unless `key_pem` has it."""
    key_pem: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    checks_hostname: bool = True
    """Whether the broker's certificate must name the host of the connection."""

    @property
    def uses_tls(self) -> bool:
        return self.protocol in {"SSL", "SASL_SSL"}

    @property
    def uses_sasl(self) -> bool:
        return self.protocol in {"SASL_PLAINTEXT", "SASL_SSL"}


PLAINTEXT: Final = Security()


def parse_security(settings: Mapping[str, str]) -> Security:
    """The result of settings such as `{"security.protocol": "SASL_SSL", ...}`; see docs/asyncio-client.md.

    Raises `SecurityOptionError` with the name of the setting if it is unknown, malformed or missing, if its
    file cannot be read, or if it would have no effect with this protocol.
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
    """The settings as the user gave them."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = settings
        for name in settings:
            if name not in _NAMES:
                near = nearest_name(name, _NAMES)
                hint = f"did you mean {near}?" if near else f"the settings are {', '.join(_NAMES)}"
                raise SecurityOptionError(name, f"there is no such setting; {hint}")

    def choice(self, name: str, choices: tuple[str, ...], default: str) -> str:
        """One of several words, ignoring case."""
        value = self._settings.get(name, default)
        for choice in choices:
            if choice.casefold() == value.strip().casefold():
                return choice
        wanted = " or ".join(filter(None, choices))
        raise SecurityOptionError(name, f"{value!r} is not {wanted}")

    def pem(self, name: str) -> str | None:
        """The text of the file that the setting names."""
        path = self._settings.get(name)
        if path is None:
            return None
        try:
            # Non-ASCII text can only be a comment, and OpenSSL's reader does not accept it.
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
        """Require the name and password if SASL is used, and refuse them if it is not."""
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
        """A setting without effect would hide that a connection is not encrypted or not authenticated."""
        for name in names:
            if name in self._settings:
                raise SecurityOptionError(name, f"has an effect only with {_PROTOCOL} {protocols}")
