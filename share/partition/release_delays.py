"""The delays that a member asks for when it releases records (docs/protocol.md). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TypeAlias

from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.extended.release_delays import ReleaseDelay
from barnabas.share.partition.limits import ShareLimits

Segment: TypeAlias = tuple[int, int, int]
"""First and last offset, both inclusive, and the acknowledge type that holds for all between."""


def check_delays(delays: Sequence[ReleaseDelay], limits: ShareLimits) -> None:
    """Raises ApiError INVALID_REQUEST for delays out of order, and for one that the group does not allow."""
    are_ascending = all(delay.last_offset < after.first_offset for delay, after in pairwise(delays))
    if not are_ascending or any(delay.first_offset > delay.last_offset for delay in delays):
        raise ApiError(ErrorCode.invalid_request, "The delays of released records are out of order.")
    delay_max_ms = limits.retry_backoff.max_ms
    for delay in delays:
        if not 0 <= delay.delay_ms <= delay_max_ms:
            raise ApiError(
                ErrorCode.invalid_request,
                f"A delay of {delay.delay_ms} ms was asked for, and the group allows 0 to {delay_max_ms} ms: "
                "ask for a shorter one, or raise share.retry.backoff.max.ms.",
            )


def by_delay(segment: Segment, delays: Sequence[ReleaseDelay]) -> Iterator[tuple[Segment, int | None]]:
    """The parts of a segment with the delay of each, in ms; None for offsets without one."""
    start, last_offset, acknowledge_type = segment
    for first, last, delay_ms in delays:
        if start <= last and first <= last_offset:
            if start < first:
                yield (start, first - 1, acknowledge_type), None
                start = first
            end = min(last, last_offset)
            yield (start, end, acknowledge_type), delay_ms
            start = end + 1
    if start <= last_offset:
        yield (start, last_offset, acknowledge_type), None
