"""The settings of client quotas: the time over which each is averaged. Kafka's names and defaults. Pure."""

from barnabas.broker.config.setting import Setting, SettingType, at_least

_INT = SettingType.INT

QUOTA_SETTINGS = (
    Setting(
        "quota.window.num",
        _INT,
        11,
        "The number of samples over which the quotas of bytes and of requests are averaged.",
        at_least(1),
    ),
    Setting("quota.window.size.seconds", _INT, 1, "The time that one of these samples covers.", at_least(1)),
    Setting(
        "controller.quota.window.num",
        _INT,
        11,
        "The number of samples whose quota of metadata changes a client may use at once.",
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
