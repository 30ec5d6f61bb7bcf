"""The options of both consumers, with their defaults and limits; `ClientSettings` has the others.

`GroupOptions` names the keyword arguments for type checkers; `GroupSettings` holds their values for the
parts. Durations are in milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.client.cluster.client_options import ClientOptions, ClientSettings

_MEMBER_ID_LENGTH_MAX = 36


class GroupOptions(ClientOptions, total=False):
    """The options of both consumers; `GroupSettings` documents each."""

    max_records: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_poll_interval_ms: int
    rack_id: str | None
    member_id: str | None


@dataclass(frozen=True, kw_only=True)
class GroupSettings(ClientSettings):
    """The options of both consumers."""

    max_records: int = 500
    """Records that one poll returns."""
    max_wait_ms: int = 500
    """How long a fetch waits at the broker for records."""
    min_bytes: int = 1
    """Bytes for which a fetch waits at the broker."""
    max_bytes: int = 50 * 1024 * 1024
    """The most bytes that a fetch asks for; one batch may be larger."""
    max_poll_interval_ms: int = 300_000
    """The longest time between two polls. A consumer whose application polls later leaves the group, so that
    others get its records, and joins again with the next poll."""
    rack_id: str | None = None
    member_id: str | None = None
    """Random unless given: 1 to 36 characters, unique in the group."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_at_least(1, "max_records", "max_bytes", "max_poll_interval_ms")
        self._require_at_least(0, "max_wait_ms", "min_bytes")
        is_fitting = self.member_id is None or 1 <= len(self.member_id) <= _MEMBER_ID_LENGTH_MAX
        self._require(is_fitting, "member_id", f"of 1 to {_MEMBER_ID_LENGTH_MAX} characters, or None")
        self._require(self.rack_id != "", "rack_id", "a name, or None")
