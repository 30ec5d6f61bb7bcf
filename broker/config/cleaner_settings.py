"""The broker's settings of the cleaner: whether, how often and how fast it works.

Names and defaults are Kafka's. The defaults of topic settings, such as the cleanable ratio, are in
`log_settings.py`. Two of Kafka's settings have no effect: log.cleaner.threads, because one cleaner serves all
logs, and log.cleaner.io.buffer.load.factor, because the map of keys uses its whole buffer. Pure.
"""

from barnabas.broker.config.setting import Setting, SettingType, at_least

_KIB = 1024
_MIB = 1024 * _KIB
_UNLIMITED = 1.7976931348623157e308
"""The largest double, Kafka's default for a rate without a limit."""

CLEANER_SETTINGS = (
    Setting(
        "log.cleaner.enable",
        SettingType.BOOLEAN,
        True,
        "Whether logs are cleaned: compacted topics, and share state that is no longer needed.",
    ),
    Setting(
        "log.cleaner.backoff.ms",
        SettingType.LONG,
        15_000,
        "How long the cleaner waits once no log is worth cleaning.",
        at_least(0),
        dynamic=True,
    ),
    Setting(
        "log.cleaner.dedupe.buffer.size",
        SettingType.LONG,
        128 * _MIB,
        "The memory for the keys of one compaction. Records with further keys wait for the next one.",
        at_least(_MIB),
        dynamic=True,
    ),
    Setting(
        "log.cleaner.io.buffer.size",
        SettingType.INT,
        512 * _KIB,
        "The memory for the cleaner's buffers, half of it for reads and half for writes.",
        at_least(2 * _KIB),
        dynamic=True,
    ),
    Setting(
        "log.cleaner.io.max.bytes.per.second",
        SettingType.DOUBLE,
        _UNLIMITED,
        "The most bytes per second that the cleaner reads and writes on average.",
        at_least(1),
        dynamic=True,
    ),
)
