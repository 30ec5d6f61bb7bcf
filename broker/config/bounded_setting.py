"""Settings of the broker with bounds, which each group may set for itself within these bounds. Pure.

One `BoundedSetting` of share groups called `lock.ms` makes four settings: `group.share.lock.ms` is the value
of groups without their own, `group.share.min.lock.ms` and `group.share.max.lock.ms` are the bounds, and
`share.lock.ms` is the value of one group.
"""

from typing import NamedTuple

from barnabas.broker.config.setting import Check, Scope, Setting, SettingType, at_least


class BoundedSetting(NamedTuple):
    """A whole number that groups of one kind have.

    Fields:
        kind: "share" or "consumer".
        least, greatest: the defaults of the two bounds.
        check, least_check, greatest_check: refuse impossible values of the broker's three settings.
        group_check: refuses impossible values of one group.
        dynamic: whether the broker's value may change while it runs; a group's value always may.
        ours: True for a setting that only Barnabas has.
        guide: the page of docs that tells more about the group's setting.
    """

    kind: str
    name: str
    default: int
    least: int
    greatest: int
    doc: str
    check: Check
    least_check: Check
    greatest_check: Check
    group_check: Check
    dynamic: bool = False
    ours: bool = False
    guide: str = ""

    @property
    def broker_name(self) -> str:
        return f"group.{self.kind}.{self.name}"

    @property
    def least_name(self) -> str:
        return f"group.{self.kind}.min.{self.name}"

    @property
    def greatest_name(self) -> str:
        return f"group.{self.kind}.max.{self.name}"

    @property
    def group_name(self) -> str:
        return f"{self.kind}.{self.name}"

    def broker_settings(self) -> tuple[Setting, Setting, Setting]:
        """The broker's value and its two bounds."""
        return (
            self._of_broker(self.broker_name, self.default, self.doc, self.check, dynamic=self.dynamic),
            self._of_broker(self.least_name, self.least, "The least value of a group.", self.least_check),
            self._of_broker(
                self.greatest_name, self.greatest, "The greatest value of a group.", self.greatest_check
            ),
        )

    def group_setting(self) -> Setting:
        """The setting of one group; its default is the broker's value."""
        return Setting(
            self.group_name,
            SettingType.INT,
            None,
            self.doc,
            self.group_check,
            scope=Scope.GROUP,
            dynamic=True,
            broker_synonyms=((self.broker_name, 1),),
            ours=self.ours,
            guide=self.guide,
        )

    def _of_broker(
        self, name: str, default: int, doc: str, check: Check, *, dynamic: bool = False
    ) -> Setting:
        return Setting(name, SettingType.INT, default, doc, check, dynamic=dynamic, ours=self.ours)


def timing_settings(kind: str) -> tuple[BoundedSetting, ...]:
    """The intervals of heartbeats and assignments, which share groups and consumer groups both have."""
    return (
        _timing(
            kind,
            "session.timeout.ms",
            (45_000, 45_000, 60_000),
            "The time without a heartbeat after which a member is removed.",
        ),
        _timing(kind, "heartbeat.interval.ms", (5000, 5000, 15_000), "How often members send heartbeats."),
        _timing(
            kind,
            "assignment.interval.ms",
            (1000, 0, 15_000),
            "The least time between two assignments of one group.",
            smallest=0,
        )._replace(dynamic=True),
    )


def _timing(
    kind: str, name: str, default_and_bounds: tuple[int, int, int], doc: str, smallest: int = 1
) -> BoundedSetting:
    check = at_least(smallest)
    return BoundedSetting(kind, name, *default_and_bounds, doc, check, check, check, check)
