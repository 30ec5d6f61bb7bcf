"""The TLS of all listeners of one broker: its settings, changed files, expiry dates, and handshakes.

Every `FILE_CHECK_SECONDS` the files of keys and certificates are looked at, so that a tool that renews them
(certbot, cert-manager) needs to tell nobody. A change by IncrementalAlterConfigs counts at once. What cannot
be used is logged, and the old keys stay in use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, Protocol

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.effective import EffectiveConfig
from barnabas.broker.config.errors import ConfigError
from barnabas.broker.config.listener import Listener
from barnabas.broker.config.listener_security import tls_settings
from barnabas.broker.network.connection import Identify
from barnabas.broker.network.open_port import Admit
from barnabas.broker.network.tls_door import HandshakeLimits, TlsDoor
from barnabas.broker.security.errors import SecuritySettingError
from barnabas.broker.security.principal import ANONYMOUS, Principal
from barnabas.broker.security.principal_mapping import SETTING as RULES_SETTING
from barnabas.broker.security.principal_mapping import PrincipalMapping
from barnabas.broker.security.tls import ServerTls, TlsSettings, peer_name
from barnabas.runtime.clock import Clock
from barnabas.runtime.counted_line import CountedLines
from barnabas.runtime.deadlines import Deadlines
from barnabas.runtime.logging import get_logger
from barnabas.runtime.metrics import Metrics

log = get_logger("tls")

FILE_CHECK_SECONDS: Final = 10.0

EXPIRY_WARNING: Final = timedelta(days=30)
"""How long before its end a certificate is warned of, at each start and once a day."""

_WARN_EVERY: Final = timedelta(days=1)


class ServedBroker(Protocol):
    """A broker, as the TLS of its listeners uses it."""

    @property
    def effective_config(self) -> EffectiveConfig: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def deadlines(self) -> Deadlines: ...

    @property
    def metrics(self) -> Metrics: ...


class ListenerTls:
    """The TLS of the listeners that have it. `begin` once, `close` once."""

    def __init__(self, broker: ServedBroker, config: BrokerConfig, room: Callable[[], int]) -> None:
        """`room` returns how many connections the broker can have besides those it has. Raises `ConfigError`
        if a listener's keys or certificates cannot be used.
        """
        self._config = broker.effective_config
        self._clock = broker.clock
        self._lines = CountedLines(broker.clock, broker.deadlines)
        self._failures = broker.metrics.counter("barnabas_tls_handshakes_failed_total")
        self._door = TlsDoor(_limits(config), self._handshake_failed, room)
        self._listeners = {
            listener.name: listener for listener in config.listeners if listener.protocol.uses_tls
        }
        self._static = config
        self._by_name = {name: self._open(name) for name in self._listeners}
        self._mappings = {name: self._mapping(name) for name in self._by_name}
        self._next_check: asyncio.TimerHandle | None = None
        self._warned: dict[str, datetime] = {}
        broker.metrics.gauge("barnabas_tls_handshakes", lambda: self._door.connection_count)
        for name, tls in self._by_name.items():
            broker.metrics.gauge(
                "barnabas_tls_certificate_expiry_timestamp_seconds",
                partial(_expiry_seconds, tls),
                listener=name,
            )

    def begin(self) -> None:
        """Look for changed files and for expiry dates from now on."""
        self._next_check = asyncio.get_running_loop().call_later(FILE_CHECK_SECONDS, self.begin)
        for name, tls in self._by_name.items():
            self._replace(name, tls.reload_changed_files)
            self._warn_of_expiry(name, tls)

    def close(self) -> None:
        if self._next_check is not None:
            self._next_check.cancel()
        self._door.close()
        self._lines.flush()

    def admits(self, listener: Listener) -> Admit | None:
        """Begins the accepted connections of this listener; None without TLS."""
        tls = self._by_name.get(listener.name)
        return None if tls is None else partial(self._door.admit, tls)

    def identify(self, listener: Listener) -> Identify | None:
        """Finds the principal in a client's certificate; None if the listener does not ask for one, or asks
        for the client's name in another way.
        """
        tls = self._by_name.get(listener.name)
        if tls is None or listener.protocol.uses_sasl or tls.settings.client_auth == "none":
            return None
        return partial(_identify, self._mappings[listener.name])

    def settings_changed(self) -> None:
        """Use the values that the settings have now."""
        for name, tls in self._by_name.items():
            settings = self._settings(name)
            if settings != tls.settings:
                self._replace(name, partial(tls.replace, settings))

    def _open(self, name: str) -> ServerTls:
        """With the stored settings, or with those of the configuration if the stored ones cannot be used: an
        administrator must be able to replace them.
        """
        settings = self._settings(name)
        try:
            return ServerTls(settings, self._now)
        except SecuritySettingError as error:
            static = partial(self._static.listener_value, name)
            given = tls_settings(self._listeners[name], self._static.given, static)
            if settings == given:
                raise ConfigError(f"Listener {name}: {error}.") from None
            log.error(
                "stored keys cannot be used, those of the configuration are", listener=name, reason=str(error)
            )
        try:
            return ServerTls(given, self._now)
        except SecuritySettingError as error:
            raise ConfigError(f"Listener {name}: {error}.") from None

    def _mapping(self, name: str) -> PrincipalMapping:
        try:
            return PrincipalMapping(str(self._config.listener_value(name, RULES_SETTING)))
        except SecuritySettingError as error:
            raise ConfigError(f"Listener {name}: {error}.") from None

    def _settings(self, name: str) -> TlsSettings:
        value = partial(self._config.listener_value, name)
        return tls_settings(self._listeners[name], self._static.given, value)

    def _replace(self, name: str, replace: Callable[[], bool | None]) -> None:
        try:
            has_changed = replace() is not False
        except SecuritySettingError as error:
            log.error("new keys cannot be used, the old ones stay", listener=name, reason=str(error))
        else:
            if has_changed:
                log.info("new keys", listener=name, expires=self._by_name[name].expires.isoformat())

    def _warn_of_expiry(self, name: str, tls: ServerTls) -> None:
        now = self._now()
        if tls.expires - now > EXPIRY_WARNING:
            self._warned.pop(name, None)
        elif name not in self._warned or now - self._warned[name] >= _WARN_EVERY:
            self._warned[name] = now
            log.warning("a certificate expires soon", listener=name, expires=tls.expires.isoformat())

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.wall_ms() / 1000, UTC)

    def _handshake_failed(self, client: str, reason: str) -> None:
        self._failures.add()
        key = client.rpartition(":")[0], reason
        self._lines.note(log.warning, "TLS handshake failed", key, client=client, reason=reason)


def _identify(mapping: PrincipalMapping, transport: asyncio.BaseTransport) -> Principal:
    """The principal of a client's certificate; anonymous without one. Raises `NotIdentified`."""
    name = peer_name(transport.get_extra_info("ssl_object"))
    return ANONYMOUS if name is None else mapping.principal(name)


def _expiry_seconds(tls: ServerTls) -> float:
    return tls.expires.timestamp()


def _limits(config: BrokerConfig) -> HandshakeLimits:
    return HandshakeLimits(
        timeout_seconds=config.integer("ssl.handshake.timeout.ms") / 1000,
        loop_share=config.number("ssl.handshake.loop.share"),
        per_second_max=config.integer("ssl.handshakes.per.second.max"),
        connections_max=config.integer("ssl.handshakes.max"),
    )
