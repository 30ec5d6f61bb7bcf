"""The common part of OffsetCommit and TxnOffsetCommit: the partitions of a request, and their results.

A partition that does not exist has an error of its own and is not part of the commit: UNKNOWN_TOPIC_ID for an
unknown topic id, else UNKNOWN_TOPIC_OR_PARTITION. A partition with ranges of offsets, which are an extension,
also gets a message if they are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar, cast
from uuid import UUID

from barnabas.coordinator.offsets.requests import OffsetToCommit
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.extended.packed import unpack_ranges
from barnabas.protocol.primitive import i32

if TYPE_CHECKING:
    from barnabas.coordinator.metadata.image import MetadataImage, Topic

_NO_ID = UUID(int=0)

_RANGES_REFUSED: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.invalid_commit_offset_size: (
        "The partition would have more ranges than offset.partition.ranges.max allows. Commit these again "
        "when its committed offset has moved."
    ),
    ErrorCode.invalid_request: (
        "Ranges need offsets from 0 on, and a committed offset before them: commit the position at which the "
        "group begins first, outside of a transaction."
    ),
}

ResultT = TypeVar("ResultT")

Place = tuple[int, int]
"""The positions of a topic and of its partition in the request."""


class AskedPartition(Protocol):
    """A partition of a request, as both APIs have it in all versions."""

    @property
    def partition_index(self) -> int: ...

    @property
    def committed_offset(self) -> int: ...

    @property
    def committed_leader_epoch(self) -> int: ...

    @property
    def committed_metadata(self) -> str | None: ...


class AskedTopic(Protocol):
    """A topic of a request; it also has a `name`, or a `topic_id`."""

    @property
    def partitions(self) -> Sequence[AskedPartition]: ...


class _TopicByName(Protocol):
    name: str


class _TopicById(Protocol):
    topic_id: UUID | None


class ResolvedOffsets(NamedTuple):
    """The offsets that can be committed, and the errors of the other partitions."""

    offsets: dict[Place, OffsetToCommit]
    refused: dict[Place, ErrorCode]

    def with_codes(self, codes: Iterable[ErrorCode]) -> Mapping[Place, ErrorCode]:
        """The error codes of all partitions; `codes` are those of `offsets`."""
        return {**self.refused, **dict(zip(self.offsets, codes, strict=True))}

    def with_error(self, code: ErrorCode) -> Mapping[Place, ErrorCode]:
        """The error codes of all partitions if the commit has failed as a whole."""
        return {**self.refused, **dict.fromkeys(self.offsets, code)}


def resolve_offsets(
    image: MetadataImage, asked_topics: Sequence[AskedTopic], *, by_id: bool
) -> ResolvedOffsets:
    """The partitions of a request, whose topics have an id or a name."""
    resolved = ResolvedOffsets({}, {})
    unknown = ErrorCode.unknown_topic_id if by_id else ErrorCode.unknown_topic_or_partition
    for topic_position, asked in enumerate(asked_topics):
        topic = _find_topic(image, asked, by_id=by_id)
        for position, partition in enumerate(asked.partitions):
            place = topic_position, position
            if topic is None:
                resolved.refused[place] = unknown
            elif not 0 <= partition.partition_index < len(topic.partitions):
                resolved.refused[place] = ErrorCode.unknown_topic_or_partition
            else:
                try:
                    resolved.offsets[place] = _offset_to_commit(topic, partition)
                except ApiError as error:
                    resolved.refused[place] = error.code
    return resolved


def _offset_to_commit(topic: Topic, partition: AskedPartition) -> OffsetToCommit:
    packed = _packed_ranges(partition)
    return OffsetToCommit(
        topic.name,
        topic.topic_id,
        partition.partition_index,
        partition.committed_offset,
        partition.committed_leader_epoch,
        partition.committed_metadata or "",
        None if packed is None else unpack_ranges(packed),
    )


def _packed_ranges(partition: AskedPartition) -> bytes | None:
    """The ranges of a partition, in the messages that may have them."""
    return getattr(partition, "ranges", None)


def _find_topic(image: MetadataImage, asked: AskedTopic, *, by_id: bool) -> Topic | None:
    if by_id:
        return image.topics_by_id.get(cast("_TopicById", asked).topic_id or _NO_ID)
    return image.topics_by_name.get(cast("_TopicByName", asked).name)


def partition_results(
    asked_topics: Sequence[AskedTopic], codes: Mapping[Place, ErrorCode], result: Callable[..., ResultT]
) -> Iterator[tuple[ResultT, ...]]:
    """The results of each topic's partitions, in the order of the request."""
    for topic_position, topic in enumerate(asked_topics):
        yield tuple(
            [
                _partition_result(partition, codes[topic_position, position], result)
                for position, partition in enumerate(topic.partitions)
            ]
        )


def _partition_result(partition: AskedPartition, code: ErrorCode, result: Callable[..., ResultT]) -> ResultT:
    index = i32(partition.partition_index)
    message = (
        None if code is ErrorCode.none or _packed_ranges(partition) is None else _RANGES_REFUSED.get(code)
    )
    if message is None:
        return result(partition_index=index, error_code=code)
    return result(partition_index=index, error_code=code, error_message=message)
