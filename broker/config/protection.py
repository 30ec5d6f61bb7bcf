"""Settings of Apache Kafka that ask for protection: authentication, access rules or TLS.

Barnabas has none of them. A configuration that asks for one is refused, because otherwise the broker would be
open although its owner believes that it is closed. Kafka's own defaults and empty values are accepted.
`listener.py` checks the listeners themselves. Pure.
"""

from collections.abc import Collection, Mapping

from barnabas.broker.config.errors import ConfigError

_LISTENER_PREFIX = "listener.name."

_AUTHENTICATION = "authentication"
_ACCESS_RULES = "access rules"
_TLS = "TLS"

_PROTECTIONS: Mapping[str, tuple[str, str]] = {
    "allow.everyone.if.no.acl.found": (_ACCESS_RULES, "true"),
    "authorizer.class.name": (_ACCESS_RULES, ""),
    "delegation.token.secret.key": (_AUTHENTICATION, ""),
    "sasl.kerberos.service.name": (_AUTHENTICATION, ""),
    "sasl.oauthbearer.expected.audience": (_AUTHENTICATION, ""),
    "sasl.oauthbearer.expected.issuer": (_AUTHENTICATION, ""),
    "sasl.oauthbearer.jwks.endpoint.url": (_AUTHENTICATION, ""),
    "sasl.server.callback.handler.class": (_AUTHENTICATION, ""),
    "security.inter.broker.protocol": (_TLS, "plaintext"),
    "ssl.engine.factory.class": (_TLS, ""),
    "super.users": (_ACCESS_RULES, ""),
}
"""By setting: the protection that it asks for, and the value in lower case that asks for none, besides the
empty one. GSSAPI is the default of sasl.enabled.mechanisms and has no effect in Kafka without a SASL
listener.
"""

PROTECTION_SETTINGS: Collection[str] = _PROTECTIONS.keys()


def refuse_protection(
    given: Mapping[str, str], written_as: Mapping[str, str], controller_names: Collection[str]
) -> None:
    """Raises `ConfigError` that names every setting in `given` that asks for protection.

    Args:
        given: the text of each setting, by its name.
        written_as: the environment variable of each setting that came from one.
        controller_names: listeners that Barnabas does not open, in upper case; their settings are ignored.
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
    """The protection that the setting asks for; None if it asks for none."""
    if name.startswith(_LISTENER_PREFIX):
        listener, _, name = name.removeprefix(_LISTENER_PREFIX).partition(".")
        if listener.upper() in controller_names:
            return None
        # The mechanism comes first: listener.name.x.scram-sha-512.sasl.jaas.config
        name = next((known for known in _PROTECTIONS if name.endswith(f".{known}")), name)
    protection, harmless = _PROTECTIONS.get(name, (None, ""))
    return None if text.strip().lower() in ("", harmless) else protection
