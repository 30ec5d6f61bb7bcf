"""The broker's settings of the cleaner: whether, how often and how fast it works.

Kafka's own names and defaults. What belongs to a topic, such as how dirty it may get, is among the
`log_settings`. Two of Kafka's are taken without effect: log.cleaner.threads, since one cleaner serves all
logs, and log.cleaner.io.buffer.load.factor, since the map of keys fills all that it is given. Pure.
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
        "Whether logs are cleaned: of share state that nobody needs, and by compaction.",
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
        "The memory for the keys of one compaction. What doesn't fit waits for the next one.",
        at_least(_MIB),
        dynamic=True,
    ),
    Setting(
        "log.cleaner.io.buffer.size",
        SettingType.INT,
        512 * _KIB,
        "The memory for what the cleaner reads and writes at a time, half of it each.",
        at_least(2 * _KIB),
        dynamic=True,
    ),
    Setting(
        "log.cleaner.io.max.bytes.per.second",
        SettingType.DOUBLE,
        _UNLIMITED,
        "How much the cleaner reads and writes in a second at most, on average.",
        at_least(1),
        dynamic=True,
    ),
)
