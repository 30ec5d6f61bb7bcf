"""What can go wrong for a consumer, drawn as a tree before anything else.

    ConsumerError
      ConsumerClosedError         something was asked for after close()
      MisuseError                 the caller's fault: a record settled twice, an option that makes no sense
        SecurityOptionError       a setting of the security; `option` is its name
      BrokerUnavailableError      nobody answers; raised only while a consumer starts, later it tries again
      BrokerError                 an answer that will not change by asking again; `code` is Kafka's
        UnsupportedBrokerError    the broker is too old, or speaks no share groups
        GroupAuthorizationError, TopicAuthorizationError
        GroupFullError, NotAShareGroupError
      SecurityError               the two sides do not trust, or do not understand, each other: TLS
        AuthenticationError       SASL: the broker does not accept who speaks, or how
      UnknownTopicError           there are no topics of these `names`
      TopicGoneError              the topic of this id was deleted
      RecordsGoneError            a partition's log doesn't hold the offset, or holds it no more
      ProduceError                one partition's records were not taken; `code` is Kafka's
      AcknowledgeError            one partition's acknowledgements were not taken; `code` is Kafka's

Whatever passes by itself (a broker that restarts, a coordinator that moves, a lost connection) is retried and
only logged. Any other exception out of this package is our bug.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final
from uuid import UUID

from barnabas.protocol.errors import ErrorCode


class ConsumerError(Exception):
    """The root: whatever this package raises on purpose."""


class ConsumerClosedError(ConsumerError):
    """The consumer is closed, or closing."""


class MisuseError(ConsumerError):
    """The caller asked for what makes no sense; nothing was changed."""


class SecurityOptionError(MisuseError):
    """A setting of the security is unknown, missing or malformed; the message begins with its name."""

    def __init__(self, option: str, reason: str) -> None:
        super().__init__(f"{option}: {reason}")
        self.option = option
        self.reason = reason

    def __reduce__(self) -> tuple[type[SecurityOptionError], tuple[str, str]]:
        """Made anew, in another process, from what it was made of."""
        return (SecurityOptionError, (self.option, self.reason))


class SecurityError(ConsumerError):
    """One of the sides refused the other in TLS: a certificate that is not trusted, or no TLS spoken there.

    Nothing passes by itself here, so there is no next try.
    """


class AuthenticationError(SecurityError):
    """Who speaks was not accepted, or how; or the broker could not prove that it knows the password."""


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


class UnknownTopicError(ConsumerError):
    """There are no topics with these names."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names)
        self.names = names

    def __str__(self) -> str:
        return f"There is no topic {', '.join(self.names)}."


class TopicGoneError(ConsumerError):
    """The topic with this id was deleted. One of the same name is another topic, with other records."""

    def __init__(self, topic_id: UUID, name: str | None) -> None:
        super().__init__(topic_id, name)
        self.topic_id = topic_id
        self.name = name

    def __str__(self) -> str:
        return f"The topic {self.name or 'of an unknown name'} (id {self.topic_id}) was deleted."


class RecordsGoneError(ConsumerError):
    """A partition's log doesn't hold `offset`: it begins behind it, or ends before.

    `log_start_offset` is the first that it holds, `end_offset` (exclusive) where it ends.
    """

    def __init__(
        self, topic: str, partition: int, offset: int, log_start_offset: int, end_offset: int
    ) -> None:
        super().__init__(topic, partition, offset, log_start_offset, end_offset)
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.log_start_offset = log_start_offset
        self.end_offset = end_offset

    def __str__(self) -> str:
        held = f"it holds {self.log_start_offset} to {self.end_offset}, exclusive"
        return f"{self.topic}-{self.partition} has no record at offset {self.offset}: {held}."


class ProduceError(ConsumerError):
    """Records were not written, and would not be if they were sent again; `reason` says what they were."""

    def __init__(self, code: ErrorCode, topic: str, partition: int, reason: str) -> None:
        super().__init__(code, topic, partition, reason)
        self.code = code
        self.topic = topic
        self.partition = partition
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.code.name} for {self.topic}-{self.partition}: {self.reason}"


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
