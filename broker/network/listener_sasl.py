"""The SASL of a listener: its mechanisms, its users, and the counts of successes and failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.errors import ConfigError
from barnabas.broker.config.listener import Listener
from barnabas.broker.config.security_settings import listener_setting_name
from barnabas.broker.config.setting import integer
from barnabas.broker.security.errors import SecuritySettingError
from barnabas.broker.security.exchanges import MECHANISMS, PLAIN, Exchange, PlainExchange, ScramExchange
from barnabas.broker.security.jaas import jaas_options
from barnabas.broker.security.users import Users
from barnabas.runtime.clock import Clock
from barnabas.runtime.counted_line import CountedLines
from barnabas.runtime.deadlines import Deadlines
from barnabas.runtime.logging import get_logger
from barnabas.runtime.metrics import Counter, Metrics

log = get_logger("sasl")

SESSION_MS_MAX = 10**14
"""More than three thousand years; a longer time would not fit into the types of durations."""

_USER_PREFIX = "user_"
_METRICS = "kafka_server_socket_server_metrics"


class ServedBroker(Protocol):
    """A broker, as the SASL of its listeners uses it."""

    @property
    def clock(self) -> Clock: ...

    @property
    def deadlines(self) -> Deadlines: ...

    @property
    def metrics(self) -> Metrics: ...

    @property
    def users(self) -> Users: ...


class ListenerSasl:
    """The SASL of one listener."""

    def __init__(self, broker: ServedBroker, config: BrokerConfig, listener: Listener) -> None:
        """Raises `ConfigError` if its settings offer clients no way to authenticate."""
        self.monotonic_ms: Callable[[], int] = broker.clock.monotonic_ms
        self.timeout_seconds = config.integer("connection.authentication.timeout.ms") / 1000
        self.failure_delay_seconds = config.integer("connection.failed.authentication.delay.ms") / 1000
        self.frame_bytes_max = integer(config.listener_value(listener.name, "sasl.server.max.receive.size"))
        mechanisms = _mechanisms(config, listener)
        self.session_ms: Mapping[str, int] = {
            mechanism: min(
                integer(config.mechanism_value(listener.name, mechanism, "connections.max.reauth.ms")),
                SESSION_MS_MAX,
            )
            for mechanism in mechanisms
        }
        """By mechanism, in their order: how long a session lasts; 0 for ever."""
        self._users = broker.users
        self._passwords = _passwords(config, listener)
        self._lines = CountedLines(broker.clock, broker.deadlines)
        counter = partial(broker.metrics.counter, listener=listener.name)
        self._authentications = _Counts(counter, "authentication")
        self._reauthentications = _Counts(counter, "reauthentication")
        self.expired: Counter = counter(f"{_METRICS}_expired_connections_killed_count")

    def begin(self, mechanism: str) -> Exchange:
        """A new exchange with one of the mechanisms."""
        if mechanism == PLAIN:
            return PlainExchange(self._users, self._passwords)
        return ScramExchange(self._users, mechanism)

    def succeeded(self, *, is_again: bool) -> None:
        self._counts(is_again=is_again).successful.add()

    def failed(self, client: str, reason: str, *, is_again: bool) -> None:
        self._counts(is_again=is_again).failed.add()
        self._lines.note(log.warning, "authentication failed", (client, reason), client=client, reason=reason)

    def close(self) -> None:
        self._lines.flush()

    def _counts(self, *, is_again: bool) -> _Counts:
        return self._reauthentications if is_again else self._authentications


class _Counts:
    def __init__(self, counter: Callable[[str], Counter], what: str) -> None:
        self.successful = counter(f"{_METRICS}_successful_{what}_total")
        self.failed = counter(f"{_METRICS}_failed_{what}_total")


def _mechanisms(config: BrokerConfig, listener: Listener) -> list[str]:
    value = config.listener_value(listener.name, "sasl.enabled.mechanisms")
    names = value if isinstance(value, tuple) else ()
    others = [name for name in names if name not in MECHANISMS]
    if others or not names:
        raise ConfigError(
            f"Listener {listener.name}: sasl.enabled.mechanisms is {','.join(names)}, and must name some of "
            f"{', '.join(MECHANISMS)}."
        )
    return list(names)


def _passwords(config: BrokerConfig, listener: Listener) -> Mapping[str, str]:
    """The passwords of users in the configuration (`user_alice="..."`)."""
    value = config.mechanism_value(listener.name, PLAIN, "sasl.jaas.config")
    if not value:
        return {}
    name = listener_setting_name(listener.name, f"{PLAIN.lower()}.sasl.jaas.config")
    try:
        options = jaas_options(name, str(value))
    except SecuritySettingError as error:
        raise ConfigError(f"{error}.") from None
    return {
        option.removeprefix(_USER_PREFIX): password
        for option, password in options.items()
        if option.startswith(_USER_PREFIX)
    }
