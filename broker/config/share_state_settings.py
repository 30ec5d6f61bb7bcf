"""The settings of share state: its store, and the share coordinator's settings (`share.coordinator.*`).

Names and defaults are Kafka's, except `share.state.store`. With `share.state.store=log`, only
`share.coordinator.snapshot.update.records.per.snapshot` has an effect. Pure.
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
        "The store of share state: 'log' for each partition's own log, 'topic' for __share_group_state.",
        one_of("log", "topic"),
        ours=True,
    ),
    Setting(
        "share.coordinator.snapshot.update.records.per.snapshot",
        _INT,
        500,
        "The number of changes of a share-partition's state between two records of its whole state.",
        between(0, 500),
    ),
    _coordinator(
        "state.topic.num.partitions",
        50,
        "The number of partitions with which __share_group_state is created.",
    ),
    _coordinator(
        "state.topic.segment.bytes",
        100 * _MIB,
        "The segment size, in bytes, with which __share_group_state is created.",
        least=_MIB,
    ),
    _coordinator(
        "state.topic.prune.interval.ms",
        _FIVE_MINUTES_MS,
        "How often records of __share_group_state that newer ones replace are deleted.",
    ),
    _coordinator(
        "cold.partition.snapshot.interval.ms",
        _FIVE_MINUTES_MS,
        "The longest time between two records of a share-partition's whole state, while others change.",
    ),
)
