"""The settings of a log: Kafka's names and defaults, and the rolling age of segments."""

from dataclasses import replace

from barnabas.storage.log_config import LogConfig, TimestampType


def test_defaults_are_kafkas() -> None:
    assert LogConfig.from_topic_configs({}) == LogConfig()
    config = LogConfig()
    assert (config.segment_bytes, config.segment_ms) == (1073741824, 604800000)
    assert (config.retention_ms, config.retention_bytes) == (604800000, -1)
    assert (config.max_message_bytes, config.index_interval_bytes) == (1048588, 4096)


def test_topic_configs_are_read_by_kafkas_names() -> None:
    config = LogConfig.from_topic_configs(
        {
            "segment.bytes": "1048576",
            "segment.index.bytes": "4096",
            "retention.ms": "-1",
            "max.message.bytes": "100",
            "message.timestamp.type": "LogAppendTime",
            "message.timestamp.before.max.ms": "1",
            "message.timestamp.after.max.ms": "2",
            "compression.type": "producer",
        }
    )
    assert config == LogConfig(
        segment_bytes=1048576,
        segment_index_bytes=4096,
        retention_ms=-1,
        max_message_bytes=100,
        message_timestamp_type=TimestampType.LOG_APPEND_TIME,
        message_timestamp_before_max_ms=1,
        message_timestamp_after_max_ms=2,
    )


def test_cleanup_policy_is_a_list() -> None:
    policies = [
        LogConfig.from_topic_configs({"cleanup.policy": text})
        for text in ("delete", "compact, DELETE", "compact", "")
    ]
    assert [(config.delete_enabled, config.compact_enabled) for config in policies] == [
        (True, False),
        (True, True),
        (False, True),
        (False, False),
    ]


def test_compaction_is_read_by_kafkas_names() -> None:
    config = LogConfig.from_topic_configs(
        {
            "min.cleanable.dirty.ratio": "0.25",
            "min.compaction.lag.ms": "1",
            "max.compaction.lag.ms": "2",
            "delete.retention.ms": "3",
        }
    )
    assert config == LogConfig(
        min_cleanable_dirty_ratio=0.25,
        min_compaction_lag_ms=1,
        max_compaction_lag_ms=2,
        delete_retention_ms=3,
    )


def test_a_segment_is_closed_in_time_for_its_compaction() -> None:
    config = LogConfig(segment_ms=100, max_compaction_lag_ms=10)
    assert config.roll_ms("s") == 100
    assert replace(config, compact_enabled=True).roll_ms("s") == 10
    assert LogConfig(segment_ms=100, compact_enabled=True).roll_ms("s") == 100


def test_a_segments_jitter_is_its_own_and_stays_the_same() -> None:
    config = LogConfig(segment_ms=1000, segment_jitter_ms=100)
    ages_ms = [config.roll_ms(str(number)) for number in range(200)]
    assert ages_ms == [config.roll_ms(str(number)) for number in range(200)]
    assert 900 < min(ages_ms) <= max(ages_ms) <= 1000
    assert len(set(ages_ms)) > 50


def test_a_jitter_leaves_something_of_the_age() -> None:
    config = LogConfig(segment_ms=10, segment_jitter_ms=1_000_000)
    assert min(config.roll_ms(str(number)) for number in range(100)) >= 1
