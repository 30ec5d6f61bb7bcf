"""The terms of DescribeShareRecords and AlterShareRecords, which only Barnabas has: the states of a group's
records, the reasons why a record waits, the changes by an administrator, and the limits. Pure.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

DESCRIBED_RANGES_MAX: Final = 1_000
"""The most ranges in one response of DescribeShareRecords. A request for more is refused."""

ALTERED_OFFSETS_MAX: Final = 10_000
"""The most offsets in one request of AlterShareRecords."""

FROM_START_OFFSET: Final = -1
"""As the first offset to describe: the share-partition start offset."""

NO_NEXT_PAGE: Final = -1
"""As the offset of the next page: there is none."""


class DescribedState(IntEnum):
    """The state of a record for a group. From 0 on these are the delivery states of KIP-932 and KIP-1191."""

    PASSED = -2
    """Before the start offset, so it is final. The group keeps no state of it, and the log does not tell
    any more how it became final."""
    NEW = -1
    """At or behind the end offset: the group has not acquired it yet."""
    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4


class Wait(IntEnum):
    """The reason why a fetch does not get a record that is new or available, or why it cannot be changed."""

    NOTHING = 0
    RECORDING = 1
    """A change of the record is being recorded."""
    KEY = 2
    """With `share.order=key`: an earlier record of its key is not final."""
    TRANSACTION = 3
    """With `share.isolation.level=read_committed`: a transaction before it is open."""
    WINDOW = 4
    """The in-flight window (`share.partition.max.record.locks`) is full."""
    ORDER_CHANGE = 5
    """A change of `share.order` waits for the end of all locks."""
    DUE = 6
    """The record is not due yet: it was released with a delay (`share.retry.backoff.ms`), or it is new, and
    delayed by `share.delivery.delay.ms` or its header (`share.delay.header`)."""


class RecordAction(IntEnum):
    """A change of records by an administrator."""

    RELEASE = 1
    """The lock ends, and the record is available immediately."""
    ARCHIVE = 2
    """The record is never delivered again."""
    DEAD_LETTER = 3
    """As if its holder had rejected it in a group with dead letters."""
