"""Session timeout, heartbeat interval and assignment interval, which share groups and consumer groups both
have: for the broker as `group.share.` and `group.consumer.`, for one group as `share.` and `consumer.`. Pure.
"""

from typing import NamedTuple

from barnabas.broker.config.setting import Check, Scope, Setting, SettingType, at_least

_INT = SettingType.INT


class BoundedSetting(NamedTuple):
    """A value that the broker has with its bounds, and that each group can set.

    Fields are names of settings: the group's, the broker's, and the broker's lower and upper bound.
    """

    group: str
    broker: str
    least: str
    greatest: str


class _Pace(NamedTuple):
    name: str
    default: int
    least: int
    greatest: int
    doc: str
    group_doc: str
    smallest: int = 1


_PACES = (
    _Pace(
        "session.timeout.ms",
        45_000,
        45_000,
        60_000,
        "The time without a heartbeat after which a member is removed.",
        "The time without a heartbeat after which a member is removed.",
    ),
    _Pace(
        "heartbeat.interval.ms",
        5000,
        5000,
        15_000,
        "How often members send heartbeats.",
        "How often members send heartbeats.",
    ),
    _Pace(
        "assignment.interval.ms",
        1000,
        0,
        15_000,
        "The least time between two assignments of one group.",
        "The least time between two assignments of the group.",
        smallest=0,
    ),
)


def bounded_setting(kind: str, name: str) -> BoundedSetting:
    """The names of the four settings; `kind` is "share" or "consumer"."""
    return BoundedSetting(
        f"{kind}.{name}", f"group.{kind}.{name}", f"group.{kind}.min.{name}", f"group.{kind}.max.{name}"
    )


def pace_bounds(kind: str) -> tuple[BoundedSetting, ...]:
    return tuple(bounded_setting(kind, pace.name) for pace in _PACES)


def broker_pace(kind: str) -> tuple[Setting, ...]:
    """The broker's settings; only the assignment interval may change while the broker runs."""
    return tuple(setting for pace in _PACES for setting in _three(kind, pace))


def _three(kind: str, pace: _Pace) -> tuple[Setting, Setting, Setting]:
    names, check = bounded_setting(kind, pace.name), at_least(pace.smallest)
    is_dynamic = pace.name == "assignment.interval.ms"
    return (
        Setting(names.broker, _INT, pace.default, pace.doc, check, dynamic=is_dynamic),
        Setting(names.least, _INT, pace.least, "The least value of a group.", check),
        Setting(names.greatest, _INT, pace.greatest, "The greatest value of a group.", check),
    )


def group_pace(kind: str) -> tuple[Setting, ...]:
    """One group's settings."""
    return tuple(group_setting(kind, pace.name, pace.group_doc, at_least(pace.smallest)) for pace in _PACES)


def group_setting(kind: str, name: str, doc: str, check: Check) -> Setting:
    """A setting of one group whose default is the broker's value."""
    return Setting(
        f"{kind}.{name}",
        _INT,
        None,
        doc,
        check,
        scope=Scope.GROUP,
        dynamic=True,
        broker_synonyms=((f"group.{kind}.{name}", 1),),
    )
