"""The settings of membership in share and consumer groups. The caller reads them."""

from typing import Protocol


class MembershipConfigs(Protocol):
    """The settings of membership in each share or consumer group (resource type GROUP). They may change at
    any time, so they are read at every use.
    """

    def session_timeout_ms(self, group_id: str) -> int:
        """`share.session.timeout.ms`, `consumer.session.timeout.ms`"""
        ...

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """`share.heartbeat.interval.ms`, `consumer.heartbeat.interval.ms`"""
        ...

    def assignment_interval_ms(self, group_id: str) -> int:
        """`share.assignment.interval.ms`, `consumer.assignment.interval.ms`"""
        ...
