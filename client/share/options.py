"""The options of a share consumer, with their defaults and limits; `GroupSettings` has the others.

`ShareConsumerOptions` names the keyword arguments of `ShareConsumer` for type checkers; `Settings` holds
their values for the parts. Durations are in milliseconds. Settings of the group are not options: the broker
configures the delivery limit and the start offset (KIP-932, "Configuration").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, get_args

from barnabas.client.cluster.client_options import check_option_names
from barnabas.client.group.group_options import GroupOptions, GroupSettings

if TYPE_CHECKING:
    from barnabas.client.share.record import Outcome

AcknowledgementMode = Literal["explicit", "implicit"]
AcquireMode = Literal["batch_optimized", "record_limit"]
Unreadable = Literal["reject", "release"]

RECORD_LOCK_DURATION_MS_MIN: Final = 1_000
"""The shortest lock that a broker grants."""


class ShareConsumerOptions(GroupOptions, total=False):
    """The options of a `ShareConsumer`; `Settings` documents each."""

    acknowledgement_mode: AcknowledgementMode
    acquire_mode: AcquireMode
    record_lock_duration_ms: int | None
    prefetch_records: int
    renew_locks: bool
    hold_ms_max: int
    stop_timeout_ms: int
    acknowledge_within_ms: int
    unreadable: Unreadable
    reject_on: tuple[type[Exception], ...]
    on_outcome: Callable[[Outcome], None] | None


@dataclass(frozen=True, kw_only=True)
class Settings(GroupSettings):
    """The options with their defaults. Raises `MisuseError` for invalid values."""

    acknowledgement_mode: AcknowledgementMode = "explicit"
    """Implicit: the next poll, or `commit`, accepts all records that a poll returned."""
    acquire_mode: AcquireMode = "batch_optimized"
    """The meaning of `max_records`, which one fetch asks for: with batch_optimized the broker completes the
    producer's batch, with record_limit it does not (KIP-1206)."""
    record_lock_duration_ms: int | None = None
    """How long the broker locks the records of this consumer, from 1,000 to the broker's maximum; None for
    the time that the group sets. Other brokers than Barnabas lock them for the group's time."""
    prefetch_records: int = 100
    """The next fetch starts when fewer than these wait in the client; with 0, when a reader waits for a
    record."""
    renew_locks: bool = True
    """Renew the lock of each held record once half of it is over (KIP-1222)."""
    hold_ms_max: int = 600_000
    """After this time a record's lock is not renewed any more, because its reader is assumed to hang."""
    stop_timeout_ms: int = 8_000
    """How long `run` lets its handlers go on after `stop`. The default is less than the 10 seconds after
    which `docker stop` kills a program."""
    acknowledge_within_ms: int = 100
    """An acknowledgement that no fetch carries is sent after this time."""
    unreadable: Unreadable = "reject"
    """The acknowledgement of records in corrupt batches, and of those that a deserializer refuses."""
    reject_on: tuple[type[Exception], ...] = ()
    """Exceptions that reject a record when they leave its `async with`; others release it."""
    on_outcome: Callable[[Outcome], None] | None = None
    """Called with the result of each partition's acknowledgements; must return quickly. Of the consumer's
    methods it may only call `wakeup`. An exception from it ends the consumer, and readers get that
    exception."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_choice("acknowledgement_mode", get_args(AcknowledgementMode))
        self._require_choice("acquire_mode", get_args(AcquireMode))
        self._require_choice("unreadable", get_args(Unreadable))
        self._require_at_least(
            0, "prefetch_records", "hold_ms_max", "stop_timeout_ms", "acknowledge_within_ms"
        )
        lock_ms = self.record_lock_duration_ms
        is_long_enough = lock_ms is None or lock_ms >= RECORD_LOCK_DURATION_MS_MIN
        expected = f"at least {RECORD_LOCK_DURATION_MS_MIN}, or None"
        self._require(is_long_enough, "record_lock_duration_ms", expected)

    @property
    def is_implicit(self) -> bool:
        return self.acknowledgement_mode == "implicit"

    @property
    def limits_records(self) -> bool:
        """Whether the broker acquires no more records than a fetch asks for."""
        return self.acquire_mode == "record_limit"


def settings_of(options: ShareConsumerOptions) -> Settings:
    """The settings from keyword arguments.

    Raises `MisuseError`, which suggests the nearest name for a typo.
    """
    check_option_names(options, ShareConsumerOptions.__annotations__)
    return Settings(**options)
