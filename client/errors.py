"""What can go wrong for a consumer, drawn as a tree before anything else.

    ConsumerError
      ConsumerClosedError         something was asked for after close()
      MisuseError                 the caller's fault: a record settled twice, an option that makes no sense
      BrokerUnavailableError      nobody answers; raised only while a consumer starts, later it tries again
      BrokerError                 an answer that will not change by asking again; `code` is Kafka's
        UnsupportedBrokerError    the broker is too old, or speaks no share groups
        GroupAuthorizationError, TopicAuthorizationError
        GroupFullError, NotAShareGroupError
      AcknowledgeError            one partition's acknowledgements were not taken; `code` is Kafka's

Whatever passes by itself (a broker that restarts, a coordinator that moves, a lost connection) is retried and
only logged. Any other exception out of this package is our bug.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from barnabas.protocol.errors import ErrorCode


class ConsumerError(Exception):
    """The root: whatever this package raises on purpose."""


class ConsumerClosedError(ConsumerError):
    """The consumer is closed, or closing."""


class MisuseError(ConsumerError):
    """The caller asked for what makes no sense; nothing was changed."""


class BrokerUnavailableError(ConsumerError):
    """No connection could be had, or the one there was is lost, or an answer took too long."""


class BrokerError(ConsumerError):
    """The broker refused with `code`, and would do so again; `message` is what it said of it, if anything."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}" if self.message else self.code.name


class UnsupportedBrokerError(BrokerError):
    """The broker does not speak an API that is needed, or not in a version that is known here."""


class GroupAuthorizationError(BrokerError):
    """The group may not be read."""


class TopicAuthorizationError(BrokerError):
    """A topic may not be read."""


class GroupFullError(BrokerError):
    """The group has as many members as it may have (`group.share.max.size`)."""


class NotAShareGroupError(BrokerError):
    """The group exists, and is of another type."""


class AcknowledgeError(ConsumerError):
    """One partition's acknowledgements were not taken: the records will be delivered again, or were already.

    `offsets` are those concerned, ascending. INVALID_RECORD_STATE says that a lock had ended before,
    NETWORK_EXCEPTION that the connection was lost and with it every lock of its share session.
    """

    def __init__(
        self, code: ErrorCode, topic: str, partition: int, offsets: Sequence[int], message: str | None = None
    ) -> None:
        super().__init__(code, topic, partition, offsets, message)
        self.code = code
        self.topic = topic
        self.partition = partition
        self.offsets = offsets
        self.message = message

    def __str__(self) -> str:
        what = f"{self.code.name} for {len(self.offsets)} records of {self.topic}-{self.partition}"
        return f"{what}: {self.message}" if self.message else what


_BY_CODE: Final[Mapping[ErrorCode, type[BrokerError]]] = MappingProxyType(
    {
        ErrorCode.unsupported_version: UnsupportedBrokerError,
        ErrorCode.group_authorization_failed: GroupAuthorizationError,
        ErrorCode.topic_authorization_failed: TopicAuthorizationError,
        ErrorCode.group_max_size_reached: GroupFullError,
        ErrorCode.group_id_not_found: NotAShareGroupError,
    }
)


def broker_error(code: ErrorCode, message: str | None) -> BrokerError:
    """The exception for a code that will not pass."""
    return _BY_CODE.get(code, BrokerError)(code, message)


def error_code(number: int) -> ErrorCode:
    """The code for a number off the wire; a newer broker's that is unknown here is UNKNOWN_SERVER_ERROR."""
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.unknown_server_error
