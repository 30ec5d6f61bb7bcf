"""The options of a share consumer, with their defaults and limits.

`ShareConsumerOptions` names the keyword arguments of `ShareConsumer` for type checkers; `Settings` holds
their values for the parts. Durations are in milliseconds. Settings of the group are not options: the broker
configures the duration of a lock, the delivery limit and the start offset (KIP-932, "Configuration").
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypedDict, get_args

from barnabas.client.errors import MisuseError
from barnabas.client.security import PLAINTEXT, Security
from barnabas.protocol.nearest_name import nearest_name

if TYPE_CHECKING:
    from barnabas.client.record import Outcome

AcknowledgementMode = Literal["explicit", "implicit"]
AcquireMode = Literal["batch_optimized", "record_limit"]
Unreadable = Literal["reject", "release"]

_MEMBER_ID_LENGTH_MAX = 36


class ShareConsumerOptions(TypedDict, total=False):
    """The options of a `ShareConsumer`; `Settings` documents each."""

    acknowledgement_mode: AcknowledgementMode
    acquire_mode: AcquireMode
    max_records: int
    prefetch_records: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    renew_locks: bool
    hold_ms_max: int
    acknowledge_within_ms: int
    unreadable: Unreadable
    reject_on: tuple[type[Exception], ...]
    on_outcome: Callable[[Outcome], None] | None
    client_id: str
    rack_id: str | None
    member_id: str | None
    connect_timeout_ms: int
    request_timeout_ms: int
    close_timeout_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    metadata_max_age_ms: int
    security: Security
    random: Callable[[], float]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The options with their defaults. Raises `MisuseError` for invalid values."""

    acknowledgement_mode: AcknowledgementMode = "explicit"
    """Implicit: the next poll, or `commit`, accepts all records that a poll returned."""
    acquire_mode: AcquireMode = "batch_optimized"
    """The meaning of `max_records` for the broker: with batch_optimized it completes the producer's batch,
    with record_limit it does not (KIP-1206)."""
    max_records: int = 500
    """Records that one fetch asks for."""
    prefetch_records: int = 100
    """The next fetch starts when fewer than these wait in the client; with 0, when a reader waits for a
    record."""
    max_wait_ms: int = 500
    """How long a fetch waits at the broker for records."""
    min_bytes: int = 1
    """Bytes for which a fetch waits at the broker."""
    max_bytes: int = 50 * 1024 * 1024
    """The most bytes that a fetch asks for; one batch may be larger."""
    renew_locks: bool = True
    """Renew the lock of each held record once half of it is over (KIP-1222)."""
    hold_ms_max: int = 600_000
    """After this time a record's lock is not renewed any more, because its reader is assumed to hang."""
    acknowledge_within_ms: int = 100
    """An acknowledgement that no fetch carries is sent after this time."""
    unreadable: Unreadable = "reject"
    """The acknowledgement of records in corrupt batches, and of those that a deserializer refuses."""
    reject_on: tuple[type[Exception], ...] = ()
    """Exceptions that reject a record when they leave its `async with`; others release it."""
    on_outcome: Callable[[Outcome], None] | None = None
    """Called with the result of each partition's acknowledgements; must return quickly. An exception from it
    ends the consumer, and readers get that exception."""
    client_id: str = "barnabas"
    rack_id: str | None = None
    member_id: str | None = None
    """Random unless given: 1 to 36 characters, unique in the group."""
    connect_timeout_ms: int = 10_000
    """How long a starting consumer tries to reach a broker."""
    request_timeout_ms: int = 30_000
    """A request without an answer for this time, plus the wait that it asked for, ends its connection."""
    close_timeout_ms: int = 5_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    metadata_max_age_ms: int = 300_000
    security: Security = PLAINTEXT
    """Encryption and authentication, from `parse_security`."""
    random: Callable[[], float] = random.random
    """The source of the jitter in pauses."""

    def __post_init__(self) -> None:
        self._check_choices()
        for name in (
            "max_records",
            "max_bytes",
            "request_timeout_ms",
            "retry_backoff_ms",
            "connect_timeout_ms",
        ):
            self._require(getattr(self, name) >= 1, name, "at least 1")
        for name in ("prefetch_records", "max_wait_ms", "min_bytes", "hold_ms_max", "acknowledge_within_ms"):
            self._require(getattr(self, name) >= 0, name, "at least 0")
        self._require(
            self.retry_backoff_max_ms >= self.retry_backoff_ms,
            "retry_backoff_max_ms",
            f"at least {self.retry_backoff_ms}, the value of retry_backoff_ms",
        )
        is_fitting = self.member_id is None or 1 <= len(self.member_id) <= _MEMBER_ID_LENGTH_MAX
        self._require(is_fitting, "member_id", f"of 1 to {_MEMBER_ID_LENGTH_MAX} characters, or None")
        self._require(self.rack_id != "", "rack_id", "a name, or None")

    def _check_choices(self) -> None:
        for name, choices in (
            ("acknowledgement_mode", get_args(AcknowledgementMode)),
            ("acquire_mode", get_args(AcquireMode)),
            ("unreadable", get_args(Unreadable)),
        ):
            self._require(getattr(self, name) in choices, name, " or ".join(choices))

    def _require(self, holds: bool, name: str, expected: str) -> None:
        if not holds:
            raise MisuseError(f"The option {name} is {getattr(self, name)!r}; it must be {expected}.")

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
    known = ShareConsumerOptions.__annotations__
    for name in options:
        if name not in known:
            nearest = nearest_name(name, known)
            hint = f"; did you mean {nearest}?" if nearest else "."
            raise MisuseError(f"There is no option {name}{hint}")
    return Settings(**options)
