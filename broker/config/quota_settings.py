"""The settings of client quotas: over which time each is averaged. Kafka's names and defaults. Pure."""

from barnabas.broker.config.setting import Setting, SettingType, at_least

_INT = SettingType.INT

QUOTA_SETTINGS = (
    Setting(
        "quota.window.num",
        _INT,
        11,
        "How many samples the quotas of bytes and of requests are averaged over.",
        at_least(1),
    ),
    Setting("quota.window.size.seconds", _INT, 1, "The time that one of these samples covers.", at_least(1)),
    Setting(
        "controller.quota.window.num",
        _INT,
        11,
        "For how many samples a client may make changes of metadata ahead of its quota.",
        at_least(1),
    ),
    Setting(
        "controller.quota.window.size.seconds",
        _INT,
        1,
        "The time that one of these samples covers.",
        at_least(1),
    ),
)
