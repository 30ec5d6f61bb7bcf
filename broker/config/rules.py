"""Checks a change of a topic's, a broker's or a group's settings, with Kafka's errors and texts.

`LogConfig.validate`, `GroupConfig.validate` and `DynamicBrokerConfig.validate` in Apache Kafka; the
controller calls this before it writes a change down. One check is stricter: Kafka stores any unknown name for
a broker, a typo with it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from barnabas.broker.config import tables
from barnabas.broker.config.broker_config import BrokerConfig, check_broker_values
from barnabas.broker.config.effective import ALL_BROKERS, EffectiveConfig, is_list
from barnabas.broker.config.errors import InvalidValueError
from barnabas.broker.config.kafka_names import UNUSED_SETTINGS
from barnabas.broker.config.security_settings import find_listener_setting, listener_setting_name
from barnabas.broker.config.setting import Setting, Value, integer, render
from barnabas.broker.security.errors import SecuritySettingError
from barnabas.coordinator.metadata.image import ConfigResource, ResourceType
from barnabas.coordinator.metadata.topic_names import METADATA_TOPIC, invalid_topic_name
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.nearest_name import nearest_name

_TABLES: Mapping[int, Mapping[str, Setting]] = {
    ResourceType.TOPIC: tables.TOPIC,
    ResourceType.BROKER: tables.BROKER,
    ResourceType.GROUP: tables.GROUP,
}


class SettingRules:
    """Implements the controller's `ConfigRules`."""

    def __init__(self, config: BrokerConfig, effective: EffectiveConfig) -> None:
        self._config = config
        self._effective = effective

    def check(self, resource: ConfigResource, configs: Mapping[str, str]) -> None:
        """Raises `ApiError` if `configs` may not be all the settings that `resource` itself has."""
        try:
            match resource.resource_type:
                case ResourceType.TOPIC:
                    self._check_topic(resource.name, configs)
                case ResourceType.GROUP:
                    self._check_group(resource.name, configs)
                case ResourceType.BROKER:
                    self._check_broker(resource.name, configs)
                case other:
                    raise ApiError(ErrorCode.invalid_request, f"Unknown resource type {other}")
        except InvalidValueError as error:
            # Kafka answers an invalid value of a broker and of a topic with different codes (KAFKA-13609).
            of_broker = resource.resource_type == ResourceType.BROKER
            code = ErrorCode.invalid_request if of_broker else ErrorCode.invalid_config
            raise ApiError(code, str(error)) from None

    def list_default(self, resource_type: int, name: str) -> str | None:
        """The default of a list setting; None for any other name."""
        setting = _TABLES.get(resource_type, {}).get(name)
        if setting is None or not is_list(setting):
            return None
        value = (
            self._config[name]
            if resource_type == ResourceType.BROKER
            else self._effective.default_value(setting)
        )
        return render(value) or ""

    def _check_topic(self, name: str, configs: Mapping[str, str]) -> None:
        if not name:
            raise ApiError(ErrorCode.invalid_request, "Default topic resources are not allowed.")
        if name == METADATA_TOPIC:
            message = f"The settings of {METADATA_TOPIC} can be read, but not changed."
            raise ApiError(ErrorCode.invalid_request, message)
        reason = invalid_topic_name(name)
        if reason is not None:
            raise ApiError(ErrorCode.invalid_topic_exception, reason)
        _check_names(configs, tables.TOPIC, "topic")
        values = self._values(tables.TOPIC, configs)
        least, greatest = integer(values["min.compaction.lag.ms"]), integer(values["max.compaction.lag.ms"])
        if least > greatest:
            raise InvalidValueError(
                f"conflict topic config setting min.compaction.lag.ms ({least}) > "
                f"max.compaction.lag.ms ({greatest})"
            )
        if values["remote.storage.enable"]:
            raise InvalidValueError(
                "Tiered Storage functionality is disabled in the broker. "
                "Topic cannot be configured with remote log storage."
            )

    def _check_group(self, name: str, configs: Mapping[str, str]) -> None:
        if not name:
            raise ApiError(ErrorCode.invalid_request, "Default group resources are not allowed.")
        _check_names(configs, tables.GROUP, "group")
        values = self._values(tables.GROUP, configs)
        for bounded in tables.BOUNDED.values():
            least, greatest = (
                self._config.integer(bounded.least_name),
                self._config.integer(bounded.greatest_name),
            )
            if not least <= integer(values[bounded.group_name]) <= greatest:
                raise InvalidValueError(
                    f"{bounded.group_name} must be in the range {least} to {greatest} inclusive. "
                    f"The broker's settings {bounded.least_name} and {bounded.greatest_name} are its bounds."
                )
        for kind in ("consumer", "share"):
            session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
            if integer(values[session]) <= (heartbeat_ms := integer(values[heartbeat])):
                raise InvalidValueError(f"{session} must be greater than {heartbeat} ({heartbeat_ms})")

    def _check_broker(self, name: str, configs: Mapping[str, str]) -> None:
        if name != ALL_BROKERS:
            self._check_broker_name(name)
        _check_names([key for key in configs if find_listener_setting(key) is None], tables.BROKER, "broker")
        settings = {key: tables.broker_setting(key) for key in configs}
        _refuse(
            "Cannot update these configs dynamically",
            [key for key, setting in settings.items() if not setting.dynamic],
        )
        _refuse(
            "These security configs can be dynamically updated only per-listener using the listener prefix",
            [key for key, setting in settings.items() if setting.per_listener and key in tables.BROKER],
        )
        if name == ALL_BROKERS:
            _refuse(
                "Cannot update these configs at default cluster level",
                [key for key, setting in settings.items() if setting.per_listener],
            )
        values = {key: self._effective.broker_value(key) for key in tables.BROKER}
        changed = {key: settings[key].parse(raw) for key, raw in configs.items()}
        check_broker_values(values | changed)
        self._check_tls(changed)

    def _check_tls(self, changed: Mapping[str, Value]) -> None:
        """Refuses keys and certificates that a listener could not use."""
        from barnabas.broker.config.listener_security import tls_settings  # few brokers use TLS
        from barnabas.broker.security.tls import make_context, utc_now

        for listener in self._config.listeners:
            if not listener.protocol.uses_tls:
                continue
            own = listener_setting_name(listener.name, "")
            unchanged = partial(self._config.listener_value, listener.name)
            settings = tls_settings(listener, self._config.given, _Changed(changed, own, unchanged).get)
            used = partial(self._effective.listener_value, listener.name)
            if settings == tls_settings(listener, self._config.given, used):
                continue  # so that a key file that is broken now does not refuse other changes
            try:
                make_context(settings, utc_now())
            except SecuritySettingError as error:
                raise InvalidValueError(f"Listener {listener.name}: {error}") from None

    def _check_broker_name(self, name: str) -> None:
        node_id = self._config.node_id
        try:
            given = int(name)
        except ValueError:
            raise ApiError(
                ErrorCode.invalid_request, f"Node id must be an integer, but it is: {name}"
            ) from None
        if given != node_id:
            message = f"Unexpected broker id, expected {node_id}, but received {name}"
            raise ApiError(ErrorCode.invalid_request, message)

    def _values(self, table: Mapping[str, Setting], configs: Mapping[str, str]) -> dict[str, Value]:
        return {
            name: setting.parse(configs[name]) if name in configs else self._effective.default_value(setting)
            for name, setting in table.items()
        }


class _Changed(NamedTuple):
    """The values of a listener's settings after a change."""

    changed: Mapping[str, Value]
    own: str
    """Begins the names of the listener's own settings."""
    unchanged: Callable[[str], Value]

    def get(self, name: str) -> Value:
        own = self.own + name
        return self.changed[own] if own in self.changed else self.unchanged(name)


def _refuse(reason: str, names: Sequence[str]) -> None:
    if names:
        raise InvalidValueError(f"{reason}: [{', '.join(names)}]")


def _check_names(names: Iterable[str], table: Mapping[str, Setting], kind: str) -> None:
    for name in names:
        if kind == "broker" and name in UNUSED_SETTINGS:
            raise ApiError(ErrorCode.invalid_config, f"This broker does not use the setting {name}")
        if name not in table:
            nearest = nearest_name(name, table)
            hint = f". Is {nearest} meant?" if nearest else ""
            raise ApiError(ErrorCode.invalid_config, f"Unknown {kind} config name: {name}{hint}")
