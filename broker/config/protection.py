"""Settings of Apache Kafka that ask for protection: authentication, access rules or TLS.

This broker gives none of them, so a configuration that asks for one is refused; ignoring it would leave open
what its author believes to be closed. Values that ask for nothing are accepted: Kafka's own defaults, and
empty ones. The listeners themselves are checked in `network/listener.py`. Pure.
"""

from collections.abc import Callable, Collection, Mapping

from barnabas.broker.config.errors import ConfigError

_LISTENER_PREFIX = "listener.name."


def _asks_unless(*harmless: str) -> Callable[[str], bool]:
    """Whether a value is another one than these; upper and lower case are the same."""
    return lambda value: value.strip().lower() not in ("", *harmless)


_AUTHENTICATION = "authentication"
_ACCESS_RULES = "access rules"
_TLS = "TLS"

_PROTECTIONS: Mapping[str, tuple[str, Callable[[str], bool]]] = {
    "allow.everyone.if.no.acl.found": (_ACCESS_RULES, _asks_unless("true")),
    "authorizer.class.name": (_ACCESS_RULES, _asks_unless()),
    "connections.max.reauth.ms": (_AUTHENTICATION, _asks_unless("0")),
    "delegation.token.secret.key": (_AUTHENTICATION, _asks_unless()),
    "sasl.enabled.mechanisms": (_AUTHENTICATION, _asks_unless("gssapi")),
    "sasl.jaas.config": (_AUTHENTICATION, _asks_unless()),
    "sasl.kerberos.service.name": (_AUTHENTICATION, _asks_unless()),
    "sasl.oauthbearer.expected.audience": (_AUTHENTICATION, _asks_unless()),
    "sasl.oauthbearer.expected.issuer": (_AUTHENTICATION, _asks_unless()),
    "sasl.oauthbearer.jwks.endpoint.url": (_AUTHENTICATION, _asks_unless()),
    "sasl.server.callback.handler.class": (_AUTHENTICATION, _asks_unless()),
    "security.inter.broker.protocol": (_TLS, _asks_unless("plaintext")),
    "ssl.client.auth": (_TLS, _asks_unless("none")),
    "ssl.engine.factory.class": (_TLS, _asks_unless()),
    "ssl.keystore.certificate.chain": (_TLS, _asks_unless()),
    "ssl.keystore.key": (_TLS, _asks_unless()),
    "ssl.keystore.location": (_TLS, _asks_unless()),
    "ssl.truststore.certificates": (_TLS, _asks_unless()),
    "ssl.truststore.location": (_TLS, _asks_unless()),
    "super.users": (_ACCESS_RULES, _asks_unless()),
}
"""By setting: the protection that it is for, and whether a value asks for it. GSSAPI is the default of
sasl.enabled.mechanisms and has no effect in Kafka without a SASL listener.
"""

PROTECTION_SETTINGS: Collection[str] = _PROTECTIONS.keys()


def refuse_protection(
    given: Mapping[str, str], written_as: Mapping[str, str], controller_names: Collection[str]
) -> None:
    """Raises `ConfigError` that names every setting in `given` that asks for protection.

    Args:
        given: the text of each setting, by its name.
        written_as: the environment variable of each setting that came from one.
        controller_names: listeners that this broker does not open, in upper case; theirs may be protected.
    """
    asked = {
        written_as.get(name, name): protection
        for name, text in sorted(given.items())
        if (protection := _asked_for(name, text, controller_names))
    }
    if asked:
        names = ", ".join(f"{name} ({protection})" for name, protection in asked.items())
        raise ConfigError(
            f"The configuration asks for protection that this broker does not have: {names}. Remove these "
            "settings, and make sure that only trusted clients reach the port."
        )


def _asked_for(name: str, text: str, controller_names: Collection[str]) -> str | None:
    """The protection that the setting asks for."""
    if name.startswith(_LISTENER_PREFIX):
        listener, _, name = name.removeprefix(_LISTENER_PREFIX).partition(".")
        if listener.upper() in controller_names:
            return None
        # The mechanism comes first: listener.name.x.scram-sha-512.sasl.jaas.config
        name = next((known for known in _PROTECTIONS if name.endswith(f".{known}")), name)
    protection, asks = _PROTECTIONS.get(name, (None, None))
    return protection if asks is not None and asks(text) else None
