"""The settings of share state: where it is kept, and the share coordinator's (`share.coordinator.*`).

Kafka's own names and defaults, but for `share.state.store`. With `share.state.store=log` only the number of
changes between whole states matters. Pure.
"""

from barnabas.broker.config.setting import Setting, SettingType, at_least, between, one_of

_STRING, _INT = SettingType.STRING, SettingType.INT
_MIB = 1024 * 1024
_FIVE_MINUTES_MS = 300_000


def _coordinator(name: str, default: int, doc: str, least: int = 1) -> Setting:
    return Setting(f"share.coordinator.{name}", _INT, default, doc, at_least(least))


SHARE_STATE_SETTINGS = (
    Setting(
        "share.state.store",
        _STRING,
        "log",
        "Where share state is kept: 'log' in each partition's own log, 'topic' in __share_group_state.",
        one_of("log", "topic"),
        ours=True,
    ),
    Setting(
        "share.coordinator.snapshot.update.records.per.snapshot",
        _INT,
        500,
        "How many changes of a share-partition's state are written before its whole state is again.",
        between(0, 500),
    ),
    _coordinator(
        "state.topic.num.partitions", 50, "How many partitions __share_group_state is created with."
    ),
    _coordinator(
        "state.topic.segment.bytes",
        100 * _MIB,
        "The segment size, in bytes, that __share_group_state is created with.",
        least=_MIB,
    ),
    _coordinator(
        "state.topic.prune.interval.ms",
        _FIVE_MINUTES_MS,
        "How often records of __share_group_state go for which newer ones stand.",
    ),
    _coordinator(
        "cold.partition.snapshot.interval.ms",
        _FIVE_MINUTES_MS,
        "How long a share-partition's state may go without being written whole, while others change.",
    ),
)
