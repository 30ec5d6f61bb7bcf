"""The options of a producer, with their defaults and limits; `ClientSettings` has the others.

`ProducerOptions` names the keyword arguments of `Producer` for type checkers; `ProducerSettings` holds their
values for the parts. Durations are in milliseconds, sizes in bytes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, get_args

from barnabas.client.cluster.client_options import ClientOptions, ClientSettings, check_option_names
from barnabas.protocol.record_batch import Compression

_NS_PER_MS: Final = 1_000_000

Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]


def wall_clock_ms() -> int:
    """The time of this machine."""
    return time.time_ns() // _NS_PER_MS


class ProducerOptions(ClientOptions, total=False):
    """The options of a `Producer`; `ProducerSettings` documents each."""

    linger_ms: int
    batch_bytes: int
    buffer_bytes: int
    compression: Codec
    delivery_timeout_ms: int
    transactional_id: str | None
    transaction_timeout_ms: int
    wall_ms: Callable[[], int]


@dataclass(frozen=True, kw_only=True)
class ProducerSettings(ClientSettings):
    """The options with their defaults. Raises `MisuseError` for invalid values."""

    linger_ms: int = 0
    """How long a batch that is not full waits for more records. With 0, records gather only while the last
    batch of their partition is in flight."""
    batch_bytes: int = 16 * 1024
    """The size of a full batch, before compression; a larger record makes a batch of its own."""
    buffer_bytes: int = 32 * 1024 * 1024
    """The most bytes of records that wait or are in flight. While there is no room, `send` waits."""
    compression: Codec = "none"
    delivery_timeout_ms: int = 120_000
    """How long temporary errors of one batch are retried."""
    transactional_id: str | None = None
    """Makes the producer transactional. A producer that starts with the same id fences the one before."""
    transaction_timeout_ms: int = 60_000
    """The broker aborts a transaction that is open for longer."""
    wall_ms: Callable[[], int] = wall_clock_ms
    """The source of the time of records, in ms since 1970."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_choice("compression", get_args(Codec))
        self._require_at_least(0, "linger_ms", "delivery_timeout_ms")
        self._require_at_least(1, "batch_bytes", "buffer_bytes", "transaction_timeout_ms")
        self._require(self.transactional_id != "", "transactional_id", "a name, or None")

    @property
    def codec(self) -> Compression:
        return Compression[self.compression.upper()]


def producer_settings_of(options: ProducerOptions) -> ProducerSettings:
    """The settings from keyword arguments.

    Raises `MisuseError`, which suggests the nearest name for a typo.
    """
    check_option_names(options, ProducerOptions.__annotations__)
    return ProducerSettings(**options)
