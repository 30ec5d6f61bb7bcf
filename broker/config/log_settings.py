"""The broker's settings of the logs: their place, segments, retention, flushing, and what topics inherit.

Most are the defaults of topic settings (`topic_settings.py` names each one's synonyms here). Kafka's own
names and defaults, but for these:

- `log.flush` and `log.flush.interval.bytes` are ours, and `log.flush.interval.ms` is 1,000 where Kafka never
  flushes by time, since there is no second replica to lose a record to.
- `log.dir` has no default under /tmp.

Pure.
"""

from barnabas.broker.config.setting import (
    LONG_MAX,
    Check,
    Setting,
    SettingType,
    Value,
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


def gzip_level(name: str, value: Value) -> None:
    """1 to 9, or -1 for the codec's own choice; 0 is none of zlib's levels."""
    if value != -1 and value not in range(1, 10):
        raise invalid(name, value, "Value must be between 1 and 9 or equal to -1")


def not_preallocated(name: str, value: Value) -> None:
    """What a preallocated segment has behind its records would be taken for damage."""
    if value:
        raise invalid(name, "true", "Segments are not preallocated by this broker")


def kept_a_while(name: str, value: Value) -> None:
    """No broker gives up all records at once; a topic may."""
    if value == 0:
        raise invalid(name, value, "Value must be at least 1, or below 0 for ever")


def _inherited(
    name: str,
    type_: SettingType,
    default: Value,
    doc: str,
    check: Check | None = None,
) -> Setting:
    """A setting that is the default of a topic setting, and may change while the broker runs."""
    return Setting(name, type_, default, doc, check, dynamic=True)


LOG_SETTINGS = (
    Setting(
        "log.dirs",
        _LIST,
        None,
        "The data directory. Kafka takes several here, this broker one. It wins over log.dir.",
    ),
    Setting("log.dir", _STRING, "barnabas-data", "The data directory, if log.dirs is not set."),
    Setting(
        "log.flush",
        _STRING,
        "interval",
        "When what is written is made safe against loss of power: 'interval' (see log.flush.interval.ms and "
        "log.flush.interval.bytes), 'always' (before each reply, many appends sharing one fsync) or 'never'.",
        one_of("interval", "always", "never"),
        ours=True,
    ),
    Setting(
        "log.flush.interval.bytes",
        _LONG,
        64 * _MIB,
        "Unless log.flush=never, a log is flushed once so many bytes are not yet safe.",
        at_least(1),
        ours=True,
    ),
    _inherited(
        "log.flush.interval.ms",
        _LONG,
        1000,
        "With log.flush=interval a log that changed is flushed this often, at most every 10 ms.",
        at_least(0),
    ),
    Setting(
        "log.flush.offset.checkpoint.interval.ms",
        _INT,
        60_000,
        "How often a flush moves a log's recovery point too, behind which all is scanned after a crash; "
        "sooner once a MiB lies behind it.",
        at_least(0),
    ),
    _inherited(
        "log.flush.interval.messages",
        _LONG,
        LONG_MAX,
        "The write after which so many records of a log would not be safe is answered once all of them are. "
        "1 does for a topic what log.flush=always does for all.",
        at_least(1),
    ),
    Setting(
        "log.flush.scheduler.interval.ms",
        _LONG,
        LONG_MAX,
        "Stands in for log.flush.interval.ms where that is not set.",
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
        "Taken at random off a segment's age. Wins over log.roll.jitter.hours.",
        at_least(0),
    ),
    Setting("log.roll.jitter.hours", _INT, 0, "Taken at random off a segment's age in hours.", at_least(0)),
    _inherited(
        "log.retention.ms",
        _LONG,
        None,
        "How long records are kept, -1 for ever. Wins over log.retention.minutes and log.retention.hours.",
        kept_a_while,
    ),
    Setting(
        "log.retention.minutes",
        _INT,
        None,
        "How many minutes records are kept. Wins over log.retention.hours.",
        kept_a_while,
    ),
    Setting("log.retention.hours", _INT, 168, "How many hours records are kept.", kept_a_while),
    _inherited(
        "log.retention.bytes",
        _LONG,
        -1,
        "How large a partition may grow before old segments go. -1: no limit.",
    ),
    Setting(
        "log.retention.check.interval.ms",
        _LONG,
        300_000,
        "How often the logs are looked through for segments to delete or to close.",
        at_least(1),
    ),
    _inherited(
        "log.segment.delete.delay.ms",
        _LONG,
        60_000,
        "How long the files of a segment that retention gave up stay on the disk.",
        at_least(0),
    ),
    _inherited(
        "log.cleanup.policy",
        _LIST,
        ("delete",),
        "What becomes of old records: delete, compact, or both.",
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
        "Only false is taken: segments grow as they are written.",
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
        "How far a record's timestamp may lie before the broker's clock.",
        at_least(0),
    ),
    _inherited(
        "log.message.timestamp.after.max.ms",
        _LONG,
        3_600_000,
        "How far a record's timestamp may lie after the broker's clock.",
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
        "How long a record stays uncompacted at least.",
        at_least(0),
    ),
    _inherited(
        "log.cleaner.max.compaction.lag.ms",
        _LONG,
        LONG_MAX,
        "How long a record stays uncompacted at most.",
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
        "The codec that record batches are stored with. 'producer' keeps what the producer chose.",
        one_of(*COMPRESSION_TYPES),
    ),
    _inherited("compression.gzip.level", _INT, -1, "The gzip level, -1 for the codec's own.", gzip_level),
    _inherited("compression.lz4.level", _INT, 9, "The lz4 level.", between(1, 17)),
    _inherited("compression.zstd.level", _INT, 3, "The zstd level.", between(-131072, 22)),
    _inherited("min.insync.replicas", _INT, 1, "How many replicas a write with acks=all needs.", at_least(1)),
    _inherited("unclean.leader.election.enable", _BOOLEAN, False, "Without meaning on one node."),
)
