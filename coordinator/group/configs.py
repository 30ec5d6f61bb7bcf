"""What each share or consumer group may be configured with by itself. It comes from outside: nothing here
reads a configuration."""

from typing import Protocol


class GroupConfigs(Protocol):
    """The configuration of each share or consumer group (resource type GROUP), read anew at every use since
    it may change at any time."""

    def session_timeout_ms(self, group_id: str) -> int:
        """`share.session.timeout.ms`, `consumer.session.timeout.ms`"""
        ...

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """`share.heartbeat.interval.ms`, `consumer.heartbeat.interval.ms`"""
        ...

    def assignment_interval_ms(self, group_id: str) -> int:
        """`share.assignment.interval.ms`, `consumer.assignment.interval.ms`"""
        ...
