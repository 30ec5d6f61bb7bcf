"""The broker's settings about the metadata log and its snapshots (KIP-630, KIP-876), and the log's own as the
settings of topic `__cluster_metadata`, which can be read and not changed.

Two of the first KIP-630 has and Kafka no longer: marked as ours. Pure.
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
        "A metadata snapshot is written once so many bytes of records follow the last one, and enough of its "
        "records have changed (metadata.snapshot.min.cleanable.ratio).",
        at_least(1),
    ),
    Setting(
        "metadata.log.max.snapshot.interval.ms",
        _LONG,
        _HOUR_MS,
        "The longest that a record of the metadata log waits for its snapshot. 0: for ever.",
        at_least(0),
    ),
    Setting(
        "metadata.snapshot.min.cleanable.ratio",
        _DOUBLE,
        0.5,
        "How many of the last metadata snapshot's records must have changed, as a share of all, before the "
        "bytes between snapshots make a new one due. 0: none.",
        between(0, 1),
        ours=True,
    ),
    Setting(
        "metadata.start.offset.lag.time.max.ms",
        _LONG,
        _WEEK_MS,
        "The longest that the metadata log keeps records for a follower that doesn't fetch them, though a "
        "snapshot stands for them.",
        at_least(0),
        ours=True,
    ),
    Setting(
        "metadata.max.retention.bytes",
        _LONG,
        100 * _MIB,
        "With so many bytes in the metadata log and its snapshots no follower is waited for. "
        "Below 0: no limit.",
    ),
    Setting(
        "metadata.max.retention.ms",
        _LONG,
        _WEEK_MS,
        "As metadata.start.offset.lag.time.max.ms; the lesser of the two holds. Below 0: that one alone.",
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
        "How old the first record of a segment of the metadata log may be before a new one is begun.",
    ),
)

METADATA_TOPIC_SETTINGS = (
    Setting(
        "cleanup.policy",
        _LIST,
        ("snapshot",),
        "What becomes of old records: they go once a snapshot stands for them.",
        scope=Scope.TOPIC,
    ),
    Setting("retention.bytes", _LONG, -1, "No record goes for the log's size alone.", scope=Scope.TOPIC),
    Setting("retention.ms", _LONG, -1, "No record goes for its age alone.", scope=Scope.TOPIC),
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
        "How old a segment's first record may be before a new one is begun.",
        scope=Scope.TOPIC,
        broker_synonyms=(("metadata.log.segment.ms", 1),),
    ),
)
"""None of them is dynamic: nobody may change one."""
