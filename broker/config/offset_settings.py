"""The settings of committed offsets, with the names of Apache Kafka 4.3 where it has them. Pure."""

from barnabas.broker.config.setting import Setting, SettingType, at_least

_MIB = 1024 * 1024
_INT, _LONG = SettingType.INT, SettingType.LONG

OFFSET_SETTINGS = (
    Setting(
        "offset.metadata.max.bytes",
        _INT,
        4_096,
        "The longest metadata that may be committed with an offset.",
        at_least(0),
    ),
    Setting(
        "offset.partition.ranges.max",
        _INT,
        100_000,
        "The ranges that may be committed individually beyond the committed offset of a partition.",
        at_least(1),
    ),
    Setting(
        "offsets.retention.minutes",
        _INT,
        10_080,
        "How long committed offsets outlive their group's last member, or the last commit.",
        at_least(1),
    ),
    Setting(
        "offsets.retention.check.interval.ms",
        _LONG,
        600_000,
        "How often committed offsets are checked for expiration.",
        at_least(1),
    ),
    Setting(
        "offsets.topic.num.partitions",
        _INT,
        50,
        "The number of partitions with which __consumer_offsets is created.",
        at_least(1),
    ),
    Setting(
        "offsets.topic.segment.bytes",
        _INT,
        100 * _MIB,
        "The segment size, in bytes, with which __consumer_offsets is created.",
        at_least(_MIB),
    ),
)
