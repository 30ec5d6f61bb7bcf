"""The settings of one group, for its coordinator and its share-partitions.

A group's own values win over the broker's. They were checked against the broker's bounds when they were set.
A later start may have narrower bounds; then these cap the values, as in Apache Kafka.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.broker.config import tables
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.dead_letter_settings import (
    COPIES_HEADERS,
    COPIES_RECORDS,
    HOLD,
    ON_FAILURE,
    TOPIC_NAME,
)
from barnabas.broker.config.effective import EffectiveConfig
from barnabas.broker.config.priority_settings import HEADER_NAME, OVERTAKEN_MAX, WINDOW_RECORDS
from barnabas.broker.config.setting import Value, decimal, integer, render
from barnabas.broker.config.share_settings import auto_offset_reset
from barnabas.coordinator.metadata.features import DEAD_LETTERS_LEVEL, SHARE_VERSION
from barnabas.coordinator.metadata.image import MetadataImage, ResourceType
from barnabas.protocol.delivery_state import LetterPlace
from barnabas.share.dead_letters.letter_topics import DeadLetterConfig
from barnabas.share.fetch.share_group_config import ShareGroupConfig
from barnabas.share.partition.limits import (
    NO_TIMING,
    PriorityLimits,
    RecordTiming,
    RetryBackoff,
    ShareLimits,
)

_CONFIGS_KEPT_MAX = 10_000
"""The most groups whose settings are cached; beyond it the cache is emptied."""


class ConsumerGroupConfig(NamedTuple):
    """The settings of one group if it is a consumer group."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int
    commits_in_order: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig(ShareGroupConfig):
    """One group's settings: those of a share group, and in `consumer` those of a consumer group."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int
    dead_letters: DeadLetterConfig
    assignor: str
    consumer: ConsumerGroupConfig


class GroupConfigs:
    """The settings of every group.

    Implements `ShareMembershipConfigs`, for the coordinator of share groups, and `ShareGroupConfigs`, for
    fetches.
    """

    def __init__(self, config: BrokerConfig, effective: EffectiveConfig, image: MetadataImage) -> None:
        self._config = config
        self._effective = effective
        self._image = image
        self._revision = image.config_revision
        self._configs: dict[str, GroupConfig] = {}

    def of(self, group_id: str) -> GroupConfig:
        """The group's settings; the same object until any setting changes."""
        if self._revision != self._image.config_revision:
            self._configs.clear()
            self._revision = self._image.config_revision
        config = self._configs.get(group_id)
        return self._look_up(group_id) if config is None else config

    def limits_of(self, group_id: str) -> ShareLimits:
        return self.of(group_id).limits

    def session_timeout_ms(self, group_id: str) -> int:
        return self.of(group_id).session_timeout_ms

    def heartbeat_interval_ms(self, group_id: str) -> int:
        return self.of(group_id).heartbeat_interval_ms

    def assignment_interval_ms(self, group_id: str) -> int:
        return self.of(group_id).assignment_interval_ms

    def assignor(self, group_id: str) -> str:
        return self.of(group_id).assignor

    def commits_in_order(self, group_id: str) -> bool:
        return self.of(group_id).consumer.commits_in_order

    def capped(self) -> Iterator[str]:
        """One sentence for the log for each value of a group that is outside the broker's bounds."""
        for group_id in self._image.configured_names(ResourceType.GROUP):
            for name, raw in self._image.configs(ResourceType.GROUP, group_id).items():
                value = tables.GROUP[name].parse(raw)
                capped = self._cap(name, value)
                if capped != value:
                    yield f"Group {group_id} has {name}={value}, which the broker's bounds cap to {capped}."

    def _look_up(self, group_id: str) -> GroupConfig:
        """Groups without settings of their own share one object, under the empty name."""
        own = self._image.configs(ResourceType.GROUP, group_id)
        config = self._compute(own) if own or not group_id else self.of("")
        if len(self._configs) >= _CONFIGS_KEPT_MAX:
            self._configs.clear()
        self._configs[group_id] = config
        return config

    def _compute(self, own: Mapping[str, str]) -> GroupConfig:
        values = {name: self._value(name, own) for name in tables.GROUP}
        reset = auto_offset_reset(str(values["share.auto.offset.reset"]))
        assert reset is not None, "the setting's check refuses other values"
        is_ordered = values["share.order"] == "key"
        dead_letters = self._dead_letters(values)
        return GroupConfig(
            limits=ShareLimits(
                delivery_count_max=integer(values["share.delivery.count.limit"]),
                lock_duration_ms=integer(values["share.record.lock.duration.ms"]),
                record_locks_max=integer(values["share.partition.max.record.locks"]),
                renew_enabled=values["share.renew.acknowledge.enable"] is True,
                key_run_max=integer(values["share.order.key.in.flight.max"]) if is_ordered else 0,
                letter_place=LetterPlace() if dead_letters.topic_name else None,
                retry_backoff=_retry_backoff(values),
                priority=PriorityLimits(
                    str(values[HEADER_NAME]), integer(values[WINDOW_RECORDS]), integer(values[OVERTAKEN_MAX])
                ),
                timing=_timing(values),
            ),
            read_committed=values["share.isolation.level"] == "read_committed",
            auto_offset_reset=reset,
            forces_record_limit=values["share.record.limit.force"] is True,
            session_timeout_ms=integer(values["share.session.timeout.ms"]),
            heartbeat_interval_ms=integer(values["share.heartbeat.interval.ms"]),
            assignment_interval_ms=integer(values["share.assignment.interval.ms"]),
            dead_letters=dead_letters,
            # The broker's setting, which is the default, is a list of one name.
            assignor=str(render(values["share.assignor.name"])),
            consumer=ConsumerGroupConfig(
                integer(values["consumer.session.timeout.ms"]),
                integer(values["consumer.heartbeat.interval.ms"]),
                integer(values["consumer.assignment.interval.ms"]),
                commits_in_order=values["individual.commit.order"] == "partition",
            ),
        )

    def _dead_letters(self, values: Mapping[str, Value]) -> DeadLetterConfig:
        """Without topic name if the feature is off (share.version below 2)."""
        is_on = self._image.feature_level(SHARE_VERSION) >= DEAD_LETTERS_LEVEL
        return DeadLetterConfig(
            topic_name=str(values[TOPIC_NAME]) if is_on else "",
            copies_records=values[COPIES_RECORDS] is True,
            copies_headers=values[COPIES_HEADERS] is True,
            holds_on_failure=values[ON_FAILURE] == HOLD,
        )

    def _value(self, name: str, own: Mapping[str, str]) -> Value:
        setting = tables.GROUP[name]
        return (
            self._cap(name, setting.parse(own[name]))
            if name in own
            else self._effective.default_value(setting)
        )

    def _cap(self, name: str, value: Value) -> Value:
        bounded = tables.BOUNDED.get(name)
        if bounded is None:
            return value
        least = self._config.integer(bounded.least_name)
        greatest = self._config.integer(bounded.greatest_name)
        return min(max(integer(value), least), greatest)


def _retry_backoff(values: Mapping[str, Value]) -> RetryBackoff:
    return RetryBackoff(
        integer(values["share.retry.backoff.ms"]),
        integer(values["share.retry.backoff.max.ms"]),
        decimal(values["share.retry.backoff.multiplier"]),
        decimal(values["share.retry.backoff.jitter"]),
    )


def _timing(values: Mapping[str, Value]) -> RecordTiming:
    """`NO_TIMING` itself for a group without such settings."""
    delay_ms, ttl_ms = integer(values["share.delivery.delay.ms"]), integer(values["share.record.ttl.ms"])
    header = str(values["share.delay.header"]).encode()
    if not (delay_ms or header or ttl_ms):
        return NO_TIMING
    return RecordTiming(delay_ms, header or None, integer(values["share.delayed.records.max"]), ttl_ms)


class ConsumerGroupConfigs:
    """Implements `MembershipConfigs`, for the coordinator of consumer groups."""

    def __init__(self, configs: GroupConfigs) -> None:
        self._configs = configs

    def session_timeout_ms(self, group_id: str) -> int:
        return self._configs.of(group_id).consumer.session_timeout_ms

    def heartbeat_interval_ms(self, group_id: str) -> int:
        return self._configs.of(group_id).consumer.heartbeat_interval_ms

    def assignment_interval_ms(self, group_id: str) -> int:
        return self._configs.of(group_id).consumer.assignment_interval_ms
