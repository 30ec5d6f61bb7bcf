"""The settings of one topic, each with the broker settings that are its default (Kafka's `TopicConfig`).

The names are exactly Kafka's, so that tools that list or copy a topic's configuration work unchanged. Pure.
"""

from barnabas.broker.config.log_settings import (
    CLEANUP_POLICIES,
    COMPRESSION_TYPES,
    TIMESTAMP_TYPES,
    gzip_level,
    not_preallocated,
)
from barnabas.broker.config.setting import (
    ARRAY_BYTES_MAX,
    Check,
    Scope,
    Setting,
    SettingType,
    Value,
    allows,
    at_least,
    between,
    each_one_of,
    invalid,
    one_of,
)

_BOOLEAN, _STRING, _INT = SettingType.BOOLEAN, SettingType.STRING, SettingType.INT
_LONG, _DOUBLE, _LIST = SettingType.LONG, SettingType.DOUBLE, SettingType.LIST
_MIB = 1024 * 1024
_MINUTE_MS, _HOUR_MS = 60_000, 3_600_000


@allows("`*`, or pairs of partition and broker such as `0:1,1:1`")
def _throttled_replicas(name: str, value: Value) -> None:
    """The same check as in Kafka. The value is kept without effect, because there is no replication."""
    assert isinstance(value, tuple)
    pairs = (item.split(":") for item in value)
    if value != ("*",) and not all(
        len(pair) == 2 and all(part.isdecimal() for part in pair) for pair in pairs
    ):
        raise invalid(
            name,
            f"[{', '.join(value)}]",
            f"{name} must be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
        )


def _topic(
    name: str,
    type_: SettingType,
    synonyms: str | tuple[tuple[str, int], ...],
    doc: str,
    check: Check | None = None,
) -> Setting:
    """A topic setting whose default is its first broker synonym that has a value."""
    pairs = ((synonyms, 1),) if isinstance(synonyms, str) else synonyms
    return Setting(name, type_, None, doc, check, scope=Scope.TOPIC, dynamic=True, broker_synonyms=pairs)


def _alone(name: str, type_: SettingType, default: Value, doc: str, check: Check | None = None) -> Setting:
    """A topic setting without a broker synonym."""
    return Setting(name, type_, default, doc, check, scope=Scope.TOPIC, dynamic=True)


TOPIC_SETTINGS = (
    _topic(
        "cleanup.policy",
        _LIST,
        "log.cleanup.policy",
        "How old records are removed: delete, compact, both or not at all.",
        each_one_of(*CLEANUP_POLICIES),
    ),
    _topic("compression.gzip.level", _INT, "compression.gzip.level", "The gzip level.", gzip_level),
    _topic("compression.lz4.level", _INT, "compression.lz4.level", "The lz4 level.", between(1, 17)),
    _topic(
        "compression.type",
        _STRING,
        "compression.type",
        "The codec with which record batches are stored. 'producer' keeps the producer's codec.",
        one_of(*COMPRESSION_TYPES),
    ),
    _topic("compression.zstd.level", _INT, "compression.zstd.level", "The zstd level.", between(-131072, 22)),
    _topic(
        "delete.retention.ms",
        _LONG,
        "log.cleaner.delete.retention.ms",
        "How long tombstones outlive compaction.",
        at_least(0),
    ),
    _topic(
        "file.delete.delay.ms",
        _LONG,
        "log.segment.delete.delay.ms",
        "How long the files of a segment that retention removed stay on the disk.",
        at_least(0),
    ),
    _topic(
        "flush.messages",
        _LONG,
        "log.flush.interval.messages",
        "The number of unflushed records at which the log is flushed before the reply. 1 has the effect of "
        "log.flush=always for the topic.",
        at_least(1),
    ),
    _topic(
        "flush.ms",
        _LONG,
        (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
        "How often a changed log is flushed, at most every 10 ms.",
        at_least(0),
    ),
    _alone(
        "follower.replication.throttled.replicas",
        _LIST,
        (),
        "Replication, which is not served.",
        _throttled_replicas,
    ),
    _topic(
        "index.interval.bytes",
        _INT,
        "log.index.interval.bytes",
        "How many bytes of records lie between index entries.",
        at_least(0),
    ),
    _alone(
        "leader.replication.throttled.replicas",
        _LIST,
        (),
        "Replication, which is not served.",
        _throttled_replicas,
    ),
    _topic(
        "local.retention.bytes",
        _LONG,
        "log.local.retention.bytes",
        "Tiered storage, which is not served.",
        at_least(-2),
    ),
    _topic(
        "local.retention.ms",
        _LONG,
        "log.local.retention.ms",
        "Tiered storage, which is not served.",
        at_least(-2),
    ),
    _topic(
        "max.compaction.lag.ms",
        _LONG,
        "log.cleaner.max.compaction.lag.ms",
        "The most time for which a record stays uncompacted.",
        at_least(1),
    ),
    _topic(
        "max.decompressed.message.bytes",
        _INT,
        "max.decompressed.message.bytes",
        "The largest record of a compressed batch, in bytes once it is decompressed.",
        between(1, ARRAY_BYTES_MAX),
    ),
    _topic(
        "max.message.bytes",
        _INT,
        "message.max.bytes",
        "The largest record batch, in bytes after compression, that a producer may send.",
        at_least(0),
    ),
    _topic(
        "message.timestamp.after.max.ms",
        _LONG,
        "log.message.timestamp.after.max.ms",
        "How far a record's timestamp may be after the broker's clock.",
        at_least(0),
    ),
    _topic(
        "message.timestamp.before.max.ms",
        _LONG,
        "log.message.timestamp.before.max.ms",
        "How far a record's timestamp may be before the broker's clock.",
        at_least(0),
    ),
    _topic(
        "message.timestamp.type",
        _STRING,
        "log.message.timestamp.type",
        "Whether a record's timestamp is the producer's or the time of the append.",
        one_of(*TIMESTAMP_TYPES),
    ),
    _topic(
        "min.cleanable.dirty.ratio",
        _DOUBLE,
        "log.cleaner.min.cleanable.ratio",
        "The share of the log that must be uncompacted before it is compacted.",
        between(0, 1),
    ),
    _topic(
        "min.compaction.lag.ms",
        _LONG,
        "log.cleaner.min.compaction.lag.ms",
        "The least time for which a record stays uncompacted.",
        at_least(0),
    ),
    _topic(
        "min.insync.replicas",
        _INT,
        "min.insync.replicas",
        "How many replicas a write with acks=all needs.",
        at_least(1),
    ),
    _topic(
        "preallocate",
        _BOOLEAN,
        "log.preallocate",
        "Only false is accepted: segments grow with each write.",
        not_preallocated,
    ),
    _topic(
        "remote.copy.lag.bytes",
        _LONG,
        "log.remote.copy.lag.bytes",
        "Tiered storage, which is not served.",
        at_least(-1),
    ),
    _topic(
        "remote.copy.lag.ms",
        _LONG,
        "log.remote.copy.lag.ms",
        "Tiered storage, which is not served.",
        at_least(-1),
    ),
    _alone("remote.log.copy.disable", _BOOLEAN, False, "Tiered storage, which is not served."),
    _alone("remote.log.delete.on.disable", _BOOLEAN, False, "Tiered storage, which is not served."),
    _alone("remote.storage.enable", _BOOLEAN, False, "Tiered storage, which is not served."),
    _topic(
        "retention.bytes",
        _LONG,
        "log.retention.bytes",
        "The size of a partition above which old segments are deleted. -1: no limit.",
    ),
    _topic(
        "retention.ms",
        _LONG,
        (("log.retention.ms", 1), ("log.retention.minutes", _MINUTE_MS), ("log.retention.hours", _HOUR_MS)),
        "How long records are kept. -1: for ever.",
        at_least(-1),
    ),
    _topic(
        "segment.bytes",
        _INT,
        "log.segment.bytes",
        "The size in bytes at which a segment is closed.",
        at_least(_MIB),
    ),
    _topic(
        "segment.index.bytes",
        _INT,
        "log.index.size.max.bytes",
        "The largest size of an offset or time index.",
        at_least(4),
    ),
    _topic(
        "segment.jitter.ms",
        _LONG,
        (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", _HOUR_MS)),
        "The most that is subtracted from segment.ms, at random per segment.",
        at_least(0),
    ),
    _topic(
        "segment.ms",
        _LONG,
        (("log.roll.ms", 1), ("log.roll.hours", _HOUR_MS)),
        "The age at which a segment is closed.",
        at_least(1),
    ),
    _topic(
        "unclean.leader.election.enable",
        _BOOLEAN,
        "unclean.leader.election.enable",
        "No effect with one node.",
    ),
)
