"""The broker's own configuration: the value of every setting at the start of the broker.

Changes by IncrementalAlterConfigs are in the metadata log; `effective.py` combines both. This file also
checks values of several settings against each other, at the start and before a change.
"""

import re
from collections.abc import Mapping

from barnabas.broker.config import tables
from barnabas.broker.config.errors import ConfigError, InvalidValueError
from barnabas.broker.config.extras import require_libraries
from barnabas.broker.config.http_config import HttpConfig, parse_http
from barnabas.broker.config.listener import Listener, ListenerError, SecurityProtocol, parse_listeners
from barnabas.broker.config.security_settings import SASL_NAMES, TLS_NAMES, listener_setting_name
from barnabas.broker.config.setting import Value, integer
from barnabas.coordinator.metadata.snapshot_settings import SnapshotSettings
from barnabas.storage.log_config import FlushPolicy, LogConfig, StorageConfig

_CLUSTER_ID_CHARACTERS_MAX = 255
_CLUSTER_ID = re.compile(rf"[A-Za-z0-9_-]{{1,{_CLUSTER_ID_CHARACTERS_MAX}}}")
_QUEUED_BYTES = "queued.max.request.bytes"
_REQUEST_BYTES = "socket.request.max.bytes"
_SECURITY_LIBRARIES = {
    SecurityProtocol.PLAINTEXT: (),
    SecurityProtocol.SSL: ("cryptography",),
    SecurityProtocol.SASL_PLAINTEXT: ("scramp",),
    SecurityProtocol.SASL_SSL: ("cryptography", "scramp"),
}
_TRACING_LIBRARIES = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")


class BrokerConfig:
    """All broker settings by name.

    `config["log.segment.bytes"]` is a setting's value; `integer`, `number`, `flag`, `text` and `items` return
    it with its type. `given` has the texts of the settings that a file, the environment or a flag sets. The
    broker logs `warnings` at every start.
    """

    def __init__(self, given: Mapping[str, str], warnings: tuple[str, ...] = ()) -> None:
        """Raises `ConfigError` if a value is not allowed, or contradicts another."""
        self.given = dict(given)
        try:
            self._values = parse_broker_settings(given)
            check_broker_values(self._values)
        except InvalidValueError as error:
            raise ConfigError(f"{error}.") from None
        self.listeners = self._mark_inter_broker(self._parse_listeners())
        self.http = self._parse_http()
        for listener in self.listeners:
            needed = _SECURITY_LIBRARIES[listener.protocol]
            require_libraries(f"Listener {listener.name}", needed, "security")
        if self.flag("opentelemetry.spans.enable"):
            require_libraries("opentelemetry.spans.enable", _TRACING_LIBRARIES, "otel")
        self.warnings = (
            *warnings,
            *self._security_warnings(),
            *self._http_warnings(),
        )
        self.log_directory = self._parse_log_directory()
        self.initial_users = self._parse_initial_users()
        """(name, password) of `sasl.initial.users`."""
        self.node_id = self.integer("node.id")
        self.cluster_id = self._parse_cluster_id()
        """None: the data directory decides."""

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def integer(self, name: str) -> int:
        value = self._values[name]
        assert isinstance(value, int) and not isinstance(value, bool), (
            f"{name} is not a whole number, or not set"
        )
        return value

    def number(self, name: str) -> float:
        value = self._values[name]
        assert isinstance(value, float), f"{name} is no number, or not set"
        return value

    def flag(self, name: str) -> bool:
        value = self._values[name]
        assert isinstance(value, bool), f"{name} is neither true nor false"
        return value

    def text(self, name: str) -> str:
        value = self._values[name]
        assert isinstance(value, str), f"{name} is no text, or not set"
        return value

    def items(self, name: str) -> tuple[str, ...]:
        """The items of a list; empty if it is not set."""
        value = self._values[name] or ()
        assert isinstance(value, tuple), f"{name} is no list"
        return value

    def listener_value(self, listener: str, name: str) -> Value:
        """The value of a setting for one listener: its own, else that of all listeners."""
        return self._values.get(listener_setting_name(listener, name), self._values[name])

    def mechanism_value(self, listener: str, mechanism: str, name: str) -> Value:
        """The value of a setting for one mechanism of SASL of a listener."""
        own = listener_setting_name(listener, f"{mechanism.lower()}.{name}")
        return self._values[own] if own in self._values else self.listener_value(listener, name)

    def storage_config(self) -> StorageConfig:
        """The settings of the storage layer for all logs together."""
        return StorageConfig(
            flush=FlushPolicy(self.text("log.flush")),
            flush_interval_ms=self.integer("log.flush.interval.ms"),
            flush_bytes=self.integer("log.flush.interval.bytes"),
            recovery_point_interval_ms=self.integer("log.flush.offset.checkpoint.interval.ms"),
            retention_check_interval_ms=self.integer("log.retention.check.interval.ms"),
            producer_id_expiration_ms=self.integer("producer.id.expiration.ms"),
            cleaner_enabled=self.flag("log.cleaner.enable"),
            cleaner_backoff_ms=self.integer("log.cleaner.backoff.ms"),
            cleaner_dedupe_buffer_bytes=self.integer("log.cleaner.dedupe.buffer.size"),
            cleaner_slice_bytes=self.integer("log.cleaner.io.buffer.size") // 2,
            cleaner_io_bytes_per_second=self.number("log.cleaner.io.max.bytes.per.second"),
        )

    def metadata_log_config(self) -> LogConfig:
        """The settings of the metadata log. A record is deleted only when a snapshot contains its change.

        As in Kafka, records are durable before the reply, with every value of log.flush: a producer id or
        leader epoch that a power failure loses would be assigned twice.
        """
        return LogConfig(
            segment_bytes=self.integer("metadata.log.segment.bytes"),
            segment_ms=self.integer("metadata.log.segment.ms"),
            retention_ms=-1,
            flush_messages=1,
            outlives_full_disk=True,
            checks_indexes=True,
        )

    def snapshot_settings(self) -> SnapshotSettings:
        """When a metadata snapshot is written, and how much of the metadata log is kept."""
        return SnapshotSettings(
            record_bytes=self.integer("metadata.log.max.record.bytes.between.snapshots"),
            interval_ms=self.integer("metadata.log.max.snapshot.interval.ms"),
            cleanable_ratio=self.number("metadata.snapshot.min.cleanable.ratio"),
            start_lag_ms=self.integer("metadata.start.offset.lag.time.max.ms"),
            retention_bytes=self.integer("metadata.max.retention.bytes"),
            retention_ms=self.integer("metadata.max.retention.ms"),
        )

    def _parse_listeners(self) -> tuple[Listener, ...]:
        name = "listener.security.protocol.map"
        pairs = (pair.partition(":") for pair in self.items(name)) if name in self.given else ()
        try:
            return parse_listeners(
                ",".join(self.items("listeners")),
                ",".join(self.items("advertised.listeners")),
                protocol_by_name={name.strip().upper(): protocol.strip() for name, _, protocol in pairs},
                controller_names=frozenset(name.upper() for name in self.items("controller.listener.names")),
            )
        except ListenerError as error:
            raise ConfigError(f"{error}.") from None

    def _parse_http(self) -> HttpConfig | None:
        """None if HTTP is off."""
        listener = None if self["http.listener"] is None else self.text("http.listener")
        token_file = None if self["http.token.file"] is None else self.text("http.token.file")
        return parse_http(listener, self.items("http.allowed.hosts"), token_file)

    def _mark_inter_broker(self, listeners: tuple[Listener, ...]) -> tuple[Listener, ...]:
        if not self.flag("inter.broker.apis.enable"):
            return listeners
        name = self._values["inter.broker.listener.name"]
        if name is None:
            raise ConfigError("inter.broker.apis.enable needs inter.broker.listener.name.")
        marked = str(name).upper()
        if all(listener.name != marked for listener in listeners):
            raise ConfigError(f"inter.broker.listener.name is {name}, which listeners does not name.")
        return tuple(listener._replace(inter_broker=listener.name == marked) for listener in listeners)

    def _security_warnings(self) -> tuple[str, ...]:
        """Names the settings of TLS and SASL that protect no listener."""
        prefixes = tuple(listener_setting_name(listener.name, "") for listener in self.listeners)
        without_effect = {
            *(() if any(listener.protocol.uses_tls for listener in self.listeners) else TLS_NAMES),
            *(() if any(listener.protocol.uses_sasl for listener in self.listeners) else SASL_NAMES),
        }
        unused = [
            name
            for name in sorted(self.given)
            if (name not in tables.BROKER and not name.startswith(prefixes))
            or (name in without_effect and self[name] not in ("", tables.BROKER[name].default))
        ]
        if not unused:
            return ()
        return (f"These settings protect no listener, and have no effect: {', '.join(unused)}.",)

    def _http_warnings(self) -> tuple[str, ...]:
        if self.http is None:
            unused = [name for name in ("http.allowed.hosts", "http.token.file") if self[name]]
            return (f"Without http.listener, {' and '.join(unused)} has no effect.",) if unused else ()
        if self.http.is_loopback or self.flag("listeners.allow.unauthenticated"):
            return ()
        warning = (
            f"Every client that can reach {self.http.address} over HTTP may see the names and states of all "
            "topics and groups. If only trusted clients can reach it, set "
            "listeners.allow.unauthenticated=true, and this warning ends."
        )
        return (warning,)

    def _parse_initial_users(self) -> tuple[tuple[str, str], ...]:
        value = self._values["sasl.initial.users"]
        entries = [entry.strip() for entry in str(value).split(",")] if value else []
        users: list[tuple[str, str]] = []
        for number, entry in enumerate(entries, 1):
            name, _, password = entry.partition(":")
            if not name or not password:
                raise ConfigError(f"sasl.initial.users: its entry number {number} is not NAME:PASSWORD.")
            users.append((name, password))
        return tuple(users)

    def _parse_cluster_id(self) -> str | None:
        cluster_id = self._values["cluster.id"]
        if cluster_id is None:
            return None
        if not _CLUSTER_ID.fullmatch(str(cluster_id)):
            raise ConfigError(
                f"cluster.id is {cluster_id!r}, and must have 1 to {_CLUSTER_ID_CHARACTERS_MAX} characters: "
                "letters, digits, '-' and '_'."
            )
        return str(cluster_id)

    def _parse_log_directory(self) -> str:
        name, directories = "log.dirs", self.items("log.dirs")
        if self._values[name] is None:
            name, directories = "log.dir", (self.text("log.dir"),)
        if not any(directories):
            raise ConfigError(f"{name} is empty, and must name the data directory.")
        if len(directories) != 1:
            raise ConfigError(
                f"log.dirs must name one directory, not {len(directories)}: the broker has a single one."
            )
        return directories[0]


def parse_broker_settings(given: Mapping[str, str]) -> dict[str, Value]:
    """The value of every broker setting: from `given`, else its default. Raises `InvalidValueError`."""
    values = {
        name: setting.parse(given[name]) if name in given else setting.default
        for name, setting in tables.BROKER.items()
    }
    values |= {
        name: tables.broker_setting(name).parse(text)
        for name, text in given.items()
        if name not in tables.BROKER
    }
    if _QUEUED_BYTES not in given:
        values[_QUEUED_BYTES] = max(integer(values[_QUEUED_BYTES]), integer(values[_REQUEST_BYTES]))
    return values


def check_broker_values(values: Mapping[str, Value]) -> None:
    """Refuses values that contradict each other (Kafka's `ShareGroupConfig` and `GroupCoordinatorConfig`)."""
    for bounded in tables.BOUNDED.values():
        _require_at_least(values, bounded.broker_name, bounded.least_name)
        _require_at_most(values, bounded.broker_name, bounded.greatest_name)
    for kind in ("share", "consumer"):
        heartbeat, session = f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms"
        if integer(values[heartbeat]) >= (session_ms := integer(values[session])):
            raise InvalidValueError(f"{heartbeat} must be less than {session} ({session_ms})")
    if integer(values[_QUEUED_BYTES]) >= 0:
        _require_at_least(values, _QUEUED_BYTES, _REQUEST_BYTES)
    _require_at_least(values, "group.share.max.share.sessions", "group.share.max.size")
    _require_at_most(values, "log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms")


def _require_at_least(values: Mapping[str, Value], name: str, least: str) -> None:
    if integer(values[name]) < (limit := integer(values[least])):
        raise InvalidValueError(f"{name} must be greater than or equal to {least} ({limit})")


def _require_at_most(values: Mapping[str, Value], name: str, greatest: str) -> None:
    if integer(values[name]) > (limit := integer(values[greatest])):
        raise InvalidValueError(f"{name} must be less than or equal to {greatest} ({limit})")
