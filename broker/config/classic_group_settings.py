"""The settings of classic groups, with the names of Apache Kafka 4.3. Pure."""

from barnabas.broker.config.setting import Setting, SettingType, at_least, between

_INT = SettingType.INT
_INT_MAX = 2**31 - 1

CLASSIC_GROUP_SETTINGS = (
    Setting(
        "group.initial.rebalance.delay.ms",
        _INT,
        0,
        "How long the first members of an empty group wait for others; each new one restarts the time. "
        "Kafka's default is 3000.",
        at_least(0),
    ),
    Setting(
        "group.min.session.timeout.ms",
        _INT,
        6_000,
        "The least session timeout of a member of a classic group.",
        at_least(1),
    ),
    Setting(
        "group.max.session.timeout.ms",
        _INT,
        1_800_000,
        "The greatest session timeout of a member of a classic group.",
        at_least(1),
    ),
    Setting("group.max.size", _INT, _INT_MAX, "The most members of one classic group.", at_least(1)),
    Setting(
        "group.classic.max.groups",
        _INT,
        10_000,
        "The most classic groups, including those that only commit offsets (not in Apache Kafka).",
        between(1, 1_000_000),
    ),
)
