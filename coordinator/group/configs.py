"""The configuration of single share and consumer groups. The caller reads it."""

from typing import Protocol


class GroupConfigs(Protocol):
    """The configuration of each share or consumer group (resource type GROUP). It may change at any time, so
    it is read at every use.
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
