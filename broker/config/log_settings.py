"""The broker's settings of the logs: directory, segments, retention, flushing, and the defaults of topics.

Most are the defaults of topic settings (`topic_settings.py` names each one's synonyms here). Names and
defaults are Kafka's, except these:

- Only Barnabas has `log.flush` and `log.flush.interval.bytes`. `log.flush.interval.ms` is 1,000; Kafka by
  default never flushes by time, because other replicas have the records.
- The default of `log.dir` is not under /tmp.

Pure.
"""

from barnabas.broker.config.setting import (
    LONG_MAX,
    Check,
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

COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
CLEANUP_POLICIES = ("compact", "delete")


@allows("1 to 9, or -1")
def gzip_level(name: str, value: Value) -> None:
    """Accepts 1 to 9, and -1 for the codec's default. Level 0, no compression, is refused."""
    if value != -1 and value not in range(1, 10):
        raise invalid(name, value, "Value must be between 1 and 9 or equal to -1")


@allows("`false`")
def not_preallocated(name: str, value: Value) -> None:
    """Refuses true, because recovery would take the empty end of a preallocated segment for damage."""
    if value:
        raise invalid(name, "true", "Segments are not preallocated by this broker")


@allows("at least 1, or below 0")
def not_zero(name: str, value: Value) -> None:
    """Refuses 0, which would delete all records of all topics at once. A topic accepts it."""
    if value == 0:
        raise invalid(name, value, "Value must be at least 1, or below 0 for ever")


def _inherited(
    name: str,
    type_: SettingType,
    default: Value,
    doc: str,
    check: Check | None = None,
) -> Setting:
    """The default of a topic setting; it may change while the broker runs."""
    return Setting(name, type_, default, doc, check, dynamic=True)


LOG_SETTINGS = (
    Setting(
        "log.dirs",
        _LIST,
        None,
        "The data directory. Kafka accepts several directories here, this broker one. Wins over log.dir.",
    ),
    Setting("log.dir", _STRING, "barnabas-data", "The data directory, if log.dirs is not set."),
    Setting(
        "log.flush",
        _STRING,
        "interval",
        "When appended data is made durable against a power failure: 'interval' (see log.flush.interval.ms "
        "and log.flush.interval.bytes), 'always' (before each reply; appends share an fsync) or 'never'.",
        one_of("interval", "always", "never"),
        ours=True,
    ),
    Setting(
        "log.flush.interval.bytes",
        _LONG,
        64 * _MIB,
        "The bytes of unflushed data at which a log is flushed, unless log.flush=never.",
        at_least(1),
        ours=True,
    ),
    _inherited(
        "log.flush.interval.ms",
        _LONG,
        1000,
        "How often a changed log is flushed with log.flush=interval, at most every 10 ms.",
        at_least(0),
    ),
    Setting(
        "log.flush.offset.checkpoint.interval.ms",
        _INT,
        60_000,
        "How often a flush also moves a log's recovery point, from which a start after a crash scans the "
        "log; sooner after 1 MiB.",
        at_least(0),
    ),
    _inherited(
        "log.flush.interval.messages",
        _LONG,
        LONG_MAX,
        "The number of unflushed records at which a log is flushed before the reply. 1 has the effect of "
        "log.flush=always for a topic.",
        at_least(1),
    ),
    Setting(
        "log.flush.scheduler.interval.ms",
        _LONG,
        LONG_MAX,
        "No effect, because log.flush.interval.ms has a default here; in Kafka this is its default.",
    ),
    _inherited(
        "log.segment.bytes",
        _INT,
        1024 * _MIB,
        "The size in bytes at which a segment is closed.",
        at_least(_MIB),
    ),
    _inherited(
        "log.roll.ms",
        _LONG,
        None,
        "The age at which a segment is closed. Wins over log.roll.hours.",
        at_least(1),
    ),
    Setting("log.roll.hours", _INT, 168, "The age in hours at which a segment is closed.", at_least(1)),
    _inherited(
        "log.roll.jitter.ms",
        _LONG,
        None,
        "The most that is subtracted from log.roll.ms, at random per segment. Wins over "
        "log.roll.jitter.hours.",
        at_least(0),
    ),
    Setting("log.roll.jitter.hours", _INT, 0, "The same as log.roll.jitter.ms, in hours.", at_least(0)),
    _inherited(
        "log.retention.ms",
        _LONG,
        None,
        "How long records are kept, -1 for ever. Wins over log.retention.minutes and log.retention.hours.",
        not_zero,
    ),
    Setting(
        "log.retention.minutes",
        _INT,
        None,
        "How many minutes records are kept. Wins over log.retention.hours.",
        not_zero,
    ),
    Setting("log.retention.hours", _INT, 168, "How many hours records are kept.", not_zero),
    _inherited(
        "log.retention.bytes",
        _LONG,
        -1,
        "The size of a partition above which old segments are deleted. -1: no limit.",
    ),
    Setting(
        "log.retention.check.interval.ms",
        _LONG,
        300_000,
        "How often the logs are checked for segments to delete or to close.",
        at_least(1),
    ),
    _inherited(
        "log.segment.delete.delay.ms",
        _LONG,
        60_000,
        "How long the files of a segment that retention removed stay on the disk.",
        at_least(0),
    ),
    _inherited(
        "log.cleanup.policy",
        _LIST,
        ("delete",),
        "How old records are removed: delete, compact, or both.",
        each_one_of(*CLEANUP_POLICIES),
    ),
    _inherited(
        "log.index.size.max.bytes",
        _INT,
        10 * _MIB,
        "The largest size of an offset or time index.",
        at_least(4),
    ),
    _inherited(
        "log.index.interval.bytes",
        _INT,
        4096,
        "How many bytes of records lie between index entries.",
        at_least(0),
    ),
    _inherited(
        "log.preallocate",
        _BOOLEAN,
        False,
        "Only false is accepted: segments grow with each write.",
        not_preallocated,
    ),
    _inherited(
        "log.message.timestamp.type",
        _STRING,
        "CreateTime",
        "Whether a record's timestamp is the producer's or the time of the append.",
        one_of(*TIMESTAMP_TYPES),
    ),
    _inherited(
        "log.message.timestamp.before.max.ms",
        _LONG,
        LONG_MAX,
        "How far a record's timestamp may be before the broker's clock.",
        at_least(0),
    ),
    _inherited(
        "log.message.timestamp.after.max.ms",
        _LONG,
        3_600_000,
        "How far a record's timestamp may be after the broker's clock.",
        at_least(0),
    ),
    _inherited(
        "log.cleaner.delete.retention.ms",
        _LONG,
        86_400_000,
        "How long tombstones outlive compaction.",
        at_least(0),
    ),
    _inherited(
        "log.cleaner.min.compaction.lag.ms",
        _LONG,
        0,
        "The least time for which a record stays uncompacted.",
        at_least(0),
    ),
    _inherited(
        "log.cleaner.max.compaction.lag.ms",
        _LONG,
        LONG_MAX,
        "The most time for which a record stays uncompacted.",
        at_least(1),
    ),
    _inherited(
        "log.cleaner.min.cleanable.ratio",
        _DOUBLE,
        0.5,
        "The share of a log that must be uncompacted before it is compacted.",
        between(0, 1),
    ),
    _inherited("log.local.retention.ms", _LONG, -2, "Tiered storage, which is not served.", at_least(-2)),
    _inherited("log.local.retention.bytes", _LONG, -2, "Tiered storage, which is not served.", at_least(-2)),
    _inherited("log.remote.copy.lag.ms", _LONG, 0, "Tiered storage, which is not served.", at_least(-1)),
    _inherited("log.remote.copy.lag.bytes", _LONG, -1, "Tiered storage, which is not served.", at_least(-1)),
    _inherited(
        "compression.type",
        _STRING,
        "producer",
        "The codec with which record batches are stored. 'producer' keeps the producer's codec.",
        one_of(*COMPRESSION_TYPES),
    ),
    _inherited("compression.gzip.level", _INT, -1, "The gzip level, -1 for the codec's default.", gzip_level),
    _inherited("compression.lz4.level", _INT, 9, "The lz4 level.", between(1, 17)),
    _inherited("compression.zstd.level", _INT, 3, "The zstd level.", between(-131072, 22)),
    _inherited("min.insync.replicas", _INT, 1, "How many replicas a write with acks=all needs.", at_least(1)),
    _inherited("unclean.leader.election.enable", _BOOLEAN, False, "No effect with one node."),
)
