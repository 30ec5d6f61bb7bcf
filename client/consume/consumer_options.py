"""The options of an ordinary consumer, with their defaults and limits; `GroupSettings` has the others.

`ConsumerOptions` names the keyword arguments of `Consumer` for type checkers; `ConsumerSettings` holds their
values for the parts. Durations are in milliseconds, sizes in bytes. The broker configures the session timeout
and the interval of heartbeats (KIP-848).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from barnabas.client.cluster.client_options import check_option_names
from barnabas.client.cluster.topics import Isolation
from barnabas.client.group.group_options import GroupOptions, GroupSettings

AutoOffsetReset = Literal["earliest", "latest", "none"]
IsolationLevel = Literal["read_uncommitted", "read_committed"]


class ConsumerOptions(GroupOptions, total=False):
    """The options of a `Consumer`; `ConsumerSettings` documents each."""

    auto_offset_reset: AutoOffsetReset
    isolation_level: IsolationLevel
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    allow_individual_commit: bool
    max_num_ranges_to_commit: int
    max_partition_bytes: int
    prefetch_bytes: int
    group_instance_id: str | None
    server_assignor: str | None


@dataclass(frozen=True, kw_only=True)
class ConsumerSettings(GroupSettings):
    """The options with their defaults. Raises `MisuseError` for invalid values."""

    auto_offset_reset: AutoOffsetReset = "latest"
    """Where to begin if the group has committed no offset, or the log does not hold it any more. With none,
    polls raise `NoOffsetError`."""
    isolation_level: IsolationLevel = "read_uncommitted"
    """read_committed delivers no records of open or aborted transactions (KIP-98)."""
    enable_auto_commit: bool = True
    """Commit at intervals, before partitions are given up, and when the consumer is closed."""
    auto_commit_interval_ms: int = 5_000
    allow_individual_commit: bool = False
    """Commit each record by itself, and share partitions with other consumers that do so, by hashes of keys
    (`allow.individual.commit`). Needs Barnabas."""
    max_num_ranges_to_commit: int = 10_000
    """With more ranges of processed records, these are committed immediately, also without automatic commits
    (`max.num.ranges.to.commit`)."""
    max_partition_bytes: int = 1024 * 1024
    """The most bytes that a fetch asks for of one partition; one batch may be larger."""
    prefetch_bytes: int = 16 * 1024 * 1024
    """Nothing is fetched while this many bytes wait in the client."""
    group_instance_id: str | None = None
    """Makes the consumer a static member (KIP-345): a close does not end its membership, so that it gets its
    partitions back if it starts again in time."""
    server_assignor: str | None = None
    """The broker's assignor, such as `uniform` or `range`; None for the broker's default."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_choice("auto_offset_reset", get_args(AutoOffsetReset))
        self._require_choice("isolation_level", get_args(IsolationLevel))
        self._require_at_least(1, "auto_commit_interval_ms", "max_partition_bytes", "prefetch_bytes")
        self._require_at_least(1, "max_num_ranges_to_commit")
        self._require(self.group_instance_id != "", "group_instance_id", "a name, or None")
        self._require(self.server_assignor != "", "server_assignor", "a name, or None")

    @property
    def settles_at_polls(self) -> bool:
        """Whether a poll means that all records delivered before are processed. If the application commits
        single records by itself, its commits say so."""
        return self.enable_auto_commit or not self.allow_individual_commit

    @property
    def isolation(self) -> Isolation:
        return Isolation[self.isolation_level.upper()]


def consumer_settings_of(options: ConsumerOptions) -> ConsumerSettings:
    """The settings from keyword arguments.

    Raises `MisuseError`, which suggests the nearest name for a typo.
    """
    check_option_names(options, ConsumerOptions.__annotations__)
    return ConsumerSettings(**options)
