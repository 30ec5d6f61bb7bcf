"""The broker's settings of the metadata log and its snapshots (KIP-630, KIP-876), and the read-only settings
of the topic `__cluster_metadata`.

Two of the broker's settings are in KIP-630, but no longer in Kafka; they are marked as ours. Pure.
"""

from barnabas.broker.config.setting import Scope, Setting, SettingType, at_least, between

_INT, _LONG, _DOUBLE, _LIST = SettingType.INT, SettingType.LONG, SettingType.DOUBLE, SettingType.LIST
_MIB = 1024 * 1024
_HOUR_MS = 60 * 60 * 1000
_WEEK_MS = 7 * 24 * _HOUR_MS

METADATA_SETTINGS = (
    Setting(
        "metadata.log.max.record.bytes.between.snapshots",
        _LONG,
        20 * _MIB,
        "The bytes of records after the last metadata snapshot at which a new one is written, if enough of "
        "its records have changed (metadata.snapshot.min.cleanable.ratio).",
        at_least(1),
    ),
    Setting(
        "metadata.log.max.snapshot.interval.ms",
        _LONG,
        _HOUR_MS,
        "The longest time from a record of the metadata log to a snapshot that contains it. 0: no limit.",
        at_least(0),
    ),
    Setting(
        "metadata.snapshot.min.cleanable.ratio",
        _DOUBLE,
        0.5,
        "The ratio of the last metadata snapshot's records that must have changed before "
        "metadata.log.max.record.bytes.between.snapshots has an effect. 0: none.",
        between(0, 1),
        ours=True,
    ),
    Setting(
        "metadata.start.offset.lag.time.max.ms",
        _LONG,
        _WEEK_MS,
        "How long the metadata log keeps records that a snapshot contains, for followers that have not "
        "fetched them.",
        at_least(0),
        ours=True,
    ),
    Setting(
        "metadata.max.retention.bytes",
        _LONG,
        100 * _MIB,
        "The size of the metadata log and its snapshots above which records are deleted although followers "
        "have not fetched them. Below 0: no limit.",
    ),
    Setting(
        "metadata.max.retention.ms",
        _LONG,
        _WEEK_MS,
        "The same as metadata.start.offset.lag.time.max.ms; the lesser of the two counts. Below 0: only the "
        "other counts.",
    ),
    Setting(
        "metadata.log.segment.bytes",
        _INT,
        1024 * _MIB,
        "The segment size, in bytes, of the metadata log.",
        at_least(8 * _MIB),
    ),
    Setting(
        "metadata.log.segment.ms",
        _LONG,
        _WEEK_MS,
        "The age of a segment's first record at which the metadata log begins a new segment.",
    ),
)

METADATA_TOPIC_SETTINGS = (
    Setting(
        "cleanup.policy",
        _LIST,
        ("snapshot",),
        "How old records are removed: they are deleted once a snapshot contains them.",
        scope=Scope.TOPIC,
    ),
    Setting("retention.bytes", _LONG, -1, "The log's size alone deletes no record.", scope=Scope.TOPIC),
    Setting("retention.ms", _LONG, -1, "A record's age alone does not delete it.", scope=Scope.TOPIC),
    Setting(
        "segment.bytes",
        _INT,
        None,
        "The largest segment.",
        scope=Scope.TOPIC,
        broker_synonyms=(("metadata.log.segment.bytes", 1),),
    ),
    Setting(
        "segment.ms",
        _LONG,
        None,
        "The age of a segment's first record at which a new segment begins.",
        scope=Scope.TOPIC,
        broker_synonyms=(("metadata.log.segment.ms", 1),),
    ),
)
"""None of them is dynamic: they cannot be changed."""
