"""Selects the broker's settings for the coordinators of groups and of their offsets."""

from __future__ import annotations

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.coordinator.classic.settings import ClassicSettings
from barnabas.coordinator.consumer.settings import ConsumerSettings, MigrationPolicy
from barnabas.coordinator.offsets.settings import OffsetSettings
from barnabas.coordinator.share_group.settings import ShareGroupSettings

_MS_PER_MINUTE = 60_000


def share_group_settings(config: BrokerConfig) -> ShareGroupSettings:
    return ShareGroupSettings(
        max_size=config.integer("group.share.max.size"),
        max_groups=config.integer("group.share.max.groups"),
        initialize_retry_interval_ms=config.integer("group.share.initialize.retry.interval.ms"),
        empty_retention_ms=config.integer("group.share.empty.retention.ms"),
    )


def consumer_group_settings(config: BrokerConfig) -> ConsumerSettings:
    return ConsumerSettings(
        max_size=config.integer("group.consumer.max.size"),
        max_groups=config.integer("group.consumer.max.groups"),
        assignors=config.items("group.consumer.assignors"),
        migration_policy=MigrationPolicy(config.text("group.consumer.migration.policy").lower()),
        regex_refresh_interval_ms=config.integer("group.consumer.regex.refresh.interval.ms"),
        classic_max_size=config.integer("group.max.size"),
    )


def classic_group_settings(config: BrokerConfig) -> ClassicSettings:
    return ClassicSettings(
        initial_rebalance_delay_ms=config.integer("group.initial.rebalance.delay.ms"),
        session_timeout_ms_min=config.integer("group.min.session.timeout.ms"),
        session_timeout_ms_max=config.integer("group.max.session.timeout.ms"),
        max_size=config.integer("group.max.size"),
        max_groups=config.integer("group.classic.max.groups"),
    )


def offset_settings(config: BrokerConfig) -> OffsetSettings:
    return OffsetSettings(
        metadata_bytes_max=config.integer("offset.metadata.max.bytes"),
        partition_ranges_max=config.integer("offset.partition.ranges.max"),
        retention_ms=config.integer("offsets.retention.minutes") * _MS_PER_MINUTE,
        retention_check_interval_ms=config.integer("offsets.retention.check.interval.ms"),
    )
