"""The settings of classic groups, under Kafka's names. The caller reads the configuration."""

from dataclasses import dataclass

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
"""How long a new member's JoinGroup may wait: it has no id yet to send heartbeats with. A client that is
still there asks again. (Kafka's `group.new.member.join.timeout.ms`, which is not a public setting there.)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicSettings:
    """Broker-wide limits."""

    initial_rebalance_delay_ms: int = 0
    """`group.initial.rebalance.delay.ms`: how long the first members of an empty group wait for others."""
    session_timeout_ms_min: int = 6_000
    """`group.min.session.timeout.ms`; below it: INVALID_SESSION_TIMEOUT."""
    session_timeout_ms_max: int = 1_800_000
    """`group.max.session.timeout.ms`; above it: INVALID_SESSION_TIMEOUT."""
    max_size: int = 2**31 - 1
    """`group.max.size`: members of a group; one more is refused with GROUP_MAX_SIZE_REACHED."""
    max_groups: int = 10_000
    """`group.classic.max.groups` (Kafka has none): groups of this coordinator; one more is refused with
    GROUP_MAX_SIZE_REACHED, or with COORDINATOR_NOT_AVAILABLE for a commit of offsets.
    """
