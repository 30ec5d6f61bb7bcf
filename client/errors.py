"""The errors of the clients, as a tree.

    ConsumerError
      ConsumerClosedError         a call after close()
      WakeupError                 `wakeup` has ended a poll
      MisuseError                 the caller's fault: a record acknowledged twice, an unusable option
        SecurityOptionError       a security setting; `option` is its name
      BrokerUnavailableError      no broker answers; raised only while a consumer starts, later it retries
      BrokerError                 the same request would fail again; `code` is Kafka's
        UnsupportedBrokerError    the broker is too old, or does not support share groups
        GroupAuthorizationError, TopicAuthorizationError
        GroupFullError, GroupNotFoundError, WrongGroupTypeError
      SecurityError               TLS: one side does not trust, or does not understand, the other
        AuthenticationError       SASL: the broker does not accept the user or the mechanism
      UnknownTopicError           no topics have these `names`
      TopicGoneError              the topic with this id was deleted
      RecordsGoneError            a partition's log does not hold the offset (any more)
      ProduceError                the broker refused the records of one partition; `code` is Kafka's
      AcknowledgeError            the broker refused one partition's acknowledgements; `code` is Kafka's
      CommitFailedError           the consumer is no longer the member that read the records
      NoOffsetError               a partition has no position, and the option auto_offset_reset is `none`
      UnreadableRecordError       a record is corrupt, or a deserializer refuses it
      ProducerFencedError         another producer has taken over the transactional id
      TransactionAbortedError     the transaction can only be aborted

Temporary errors (a broker that restarts, a coordinator that moves, a lost connection) are retried and only
logged. Any other exception from this package is a bug in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final
from uuid import UUID

from barnabas.protocol.counted import counted
from barnabas.protocol.errors import ErrorCode


class ConsumerError(Exception):
    """The root of all errors that this package raises on purpose."""


class ConsumerClosedError(ConsumerError):
    """The consumer is closed, or it is closing, or `stop` has ended its polls."""


class WakeupError(ConsumerError):
    """`wakeup` was called: the poll under way, or else the next one, ends with this error."""


class MisuseError(ConsumerError):
    """The caller's request makes no sense; nothing was changed."""


class SecurityOptionError(MisuseError):
    """A security setting is unknown, missing or malformed; the message begins with its name."""

    def __init__(self, option: str, reason: str) -> None:
        super().__init__(f"{option}: {reason}")
        self.option = option
        self.reason = reason

    def __reduce__(self) -> tuple[type[SecurityOptionError], tuple[str, str]]:
        """Allows pickling: the error is built again from its two arguments."""
        return (SecurityOptionError, (self.option, self.reason))


class SecurityError(ConsumerError):
    """One side refused the other in TLS: the certificate is not trusted, or the port does not use TLS.

    Waiting would not help, so the client does not retry.
    """


class AuthenticationError(SecurityError):
    """The broker refused the user or the mechanism, or it could not prove that it knows the password."""


class BrokerUnavailableError(ConsumerError):
    """No connection could be opened, the connection was lost, or an answer took too long."""


class BrokerError(ConsumerError):
    """The broker refused with `code`, and would refuse again; `message` is its explanation, or None."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}" if self.message else self.code.name


class UnsupportedBrokerError(BrokerError):
    """The broker does not support a required API, or only in versions unknown to this client."""


class GroupAuthorizationError(BrokerError):
    """The user may not read the group."""


class TopicAuthorizationError(BrokerError):
    """The user may not read a topic."""


class GroupFullError(BrokerError):
    """The group has the maximum number of members (`group.share.max.size`)."""


class GroupNotFoundError(BrokerError):
    """The group does not exist, or it is of another type than the request needs."""


class WrongGroupTypeError(BrokerError):
    """A consumer cannot join the group, because the group exists with another type."""


class UnknownTopicError(ConsumerError):
    """No topics have these names."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names)
        self.names = names

    def __str__(self) -> str:
        return f"There is no topic {', '.join(self.names)}."


class TopicGoneError(ConsumerError):
    """The topic with this id was deleted. A new topic of the same name has another id and other records."""

    def __init__(self, topic_id: UUID, name: str | None) -> None:
        super().__init__(topic_id, name)
        self.topic_id = topic_id
        self.name = name

    def __str__(self) -> str:
        return f"The topic {self.name or 'of an unknown name'} (id {self.topic_id}) was deleted."


class RecordsGoneError(ConsumerError):
    """A partition's log does not hold `offset`: it begins after it, or ends before it.

    `log_start_offset` is the first offset of the log, `end_offset` (exclusive) is its end.
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
    """The broker refused records, and would refuse them again; `reason` describes them."""

    def __init__(self, code: ErrorCode, topic: str, partition: int, reason: str) -> None:
        super().__init__(code, topic, partition, reason)
        self.code = code
        self.topic = topic
        self.partition = partition
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.code.name} for {self.topic}-{self.partition}: {self.reason}"


class AcknowledgeError(ConsumerError):
    """The broker refused acknowledgements of one partition: the records will be, or were, delivered again.

    `offsets` are the refused ones, ascending. INVALID_RECORD_STATE: a lock had ended before.
    NETWORK_EXCEPTION: the connection was lost, and with it every lock of its share session.
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
        records = counted(len(self.offsets), "record")
        refused = f"{self.code.name} for {records} of {self.topic}-{self.partition}"
        return f"{refused}: {self.message}" if self.message else refused


class CommitFailedError(ConsumerError):
    """The group has given the partitions to other members, so nothing was committed.

    The records since the last commit are delivered again, to any member. The consumer joins the group again
    by itself; the application continues with its next poll.
    """

    def __init__(self, group_id: str, reason: str) -> None:
        super().__init__(group_id, reason)
        self.group_id = group_id
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"The offsets were not committed, because {self.reason}. Other members of the group "
            f"{self.group_id} get the records since the last commit. Poll again to continue; if the "
            "application is too slow, set a smaller max_records or a longer max_poll_interval_ms."
        )


class NoOffsetError(ConsumerError):
    """A partition has no usable position, and `auto_offset_reset` is `none`: call `seek`.

    `offset` is the position that is out of range; None if the group has committed none.
    """

    def __init__(self, topic: str, partition: int, offset: int | None) -> None:
        super().__init__(topic, partition, offset)
        self.topic = topic
        self.partition = partition
        self.offset = offset

    def __str__(self) -> str:
        if self.offset is None:
            return f"The group has no committed offset for {self.topic}-{self.partition}; call seek."
        return f"{self.topic}-{self.partition} does not hold the offset {self.offset} any more; call seek."


class UnreadableRecordError(ConsumerError):
    """A record is corrupt, or a deserializer refuses it; its offset is the position of the partition.

    Each poll raises this again; `seek` beyond `offset` skips the record.
    """

    def __init__(self, topic: str, partition: int, offset: int, reason: str) -> None:
        super().__init__(topic, partition, offset, reason)
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}: the record at {self.offset} cannot be read: {self.reason}"


class ProducerFencedError(BrokerError):
    """Another producer has begun to use the transactional id: close this one, it cannot continue."""


class TransactionAbortedError(ConsumerError):
    """A step of the transaction failed with `cause`; only `abort_transaction` is possible, then a new one."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(cause)
        self.cause = cause

    def __str__(self) -> str:
        return f"The transaction must be aborted: {self.cause}"


_BY_CODE: Final[Mapping[ErrorCode, type[BrokerError]]] = MappingProxyType(
    {
        ErrorCode.unsupported_version: UnsupportedBrokerError,
        ErrorCode.group_authorization_failed: GroupAuthorizationError,
        ErrorCode.topic_authorization_failed: TopicAuthorizationError,
        ErrorCode.group_max_size_reached: GroupFullError,
        ErrorCode.group_id_not_found: GroupNotFoundError,
        ErrorCode.producer_fenced: ProducerFencedError,
        ErrorCode.invalid_producer_epoch: ProducerFencedError,
        ErrorCode.invalid_producer_id_mapping: ProducerFencedError,
    }
)


def broker_error(code: ErrorCode, message: str | None) -> BrokerError:
    """The exception for a lasting error."""
    return _BY_CODE.get(code, BrokerError)(code, message)


def joining_error(code: ErrorCode, message: str | None) -> BrokerError:
    """The exception for a lasting error of a consumer that joins its group.

    A group that does not exist would be created, so GROUP_ID_NOT_FOUND means one of another type.
    """
    if code is ErrorCode.group_id_not_found:
        return WrongGroupTypeError(code, message)
    return broker_error(code, message)


def error_code(number: int) -> ErrorCode:
    """The code for a number from the wire; a number unknown to this client becomes UNKNOWN_SERVER_ERROR."""
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.unknown_server_error
