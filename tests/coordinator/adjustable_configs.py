"""Settings of membership in groups (`ShareMembershipConfigs`) that a test may change."""

from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class AdjustableConfigs:
    """The same values for every group, Kafka's defaults unless told otherwise."""

    session_timeout: int = 45_000
    heartbeat_interval: int = 5_000
    assignment_interval: int = 1_000
    share_assignor: str = "simple"
    ordered_groups: frozenset[str] = frozenset()

    def session_timeout_ms(self, group_id: str) -> int:
        return self.session_timeout

    def heartbeat_interval_ms(self, group_id: str) -> int:
        return self.heartbeat_interval

    def assignment_interval_ms(self, group_id: str) -> int:
        return self.assignment_interval

    def assignor(self, group_id: str) -> str:
        return self.share_assignor

    def commits_in_order(self, group_id: str) -> bool:
        return group_id in self.ordered_groups
