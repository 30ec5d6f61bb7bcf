"""The TLS of a listener, from its settings."""

from collections.abc import Callable, Collection

from barnabas.broker.config.listener import Listener
from barnabas.broker.config.security_settings import listener_setting_name
from barnabas.broker.config.setting import Value
from barnabas.broker.security.key_store import StoreSettings
from barnabas.broker.security.tls import TlsSettings

ListenerValue = Callable[[str], Value]
"""Returns a listener's value for a setting."""


def tls_settings(listener: Listener, given: Collection[str], value: ListenerValue) -> TlsSettings:
    """The TLS of one listener; `given` are the names of the settings that the configuration sets.

    As in Kafka: beside SASL, certificates are asked for only if the setting is the listener's own.
    """
    asks_nobody = (
        listener.protocol.uses_sasl and listener_setting_name(listener.name, "ssl.client.auth") not in given
    )
    return TlsSettings(
        key_store=StoreSettings(
            "ssl.keystore.",
            str(value("ssl.keystore.type")),
            _text(value("ssl.keystore.location")),
            _text(value("ssl.keystore.password")),
            _text(value("ssl.keystore.certificate.chain")),
            _text(value("ssl.keystore.key")),
            _text(value("ssl.key.password")),
        ),
        trust_store=StoreSettings(
            "ssl.truststore.",
            str(value("ssl.truststore.type")),
            _text(value("ssl.truststore.location")),
            _text(value("ssl.truststore.password")),
            _text(value("ssl.truststore.certificates")),
        ),
        client_auth="none" if asks_nobody else str(value("ssl.client.auth")),
        protocols=_items(value("ssl.enabled.protocols")),
        cipher_suites=_items(value("ssl.cipher.suites")),
    )


def _text(value: Value) -> str | None:
    """None also for an empty text."""
    return str(value) if value else None


def _items(value: Value) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()
