"""Setting and deleting the offsets of a share group without members (KIP-932, "Admin").

The offsets are kept with the partitions: `ShareStateInitialiser` sets them before the group's record lists
the partitions as initialised. A crash in between leaves state that no group lists; it is created again when
needed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from barnabas.coordinator.group.steps import Steps
from barnabas.coordinator.replay.interfaces import TopicCatalog, TopicShape
from barnabas.coordinator.replay.steps import Settle, Write
from barnabas.coordinator.share_group.initialisation import (
    NewPartition,
    after_initialisation,
    without_topics,
    without_zero_starts,
)
from barnabas.coordinator.share_group.interfaces import ShareStateInitialiser
from barnabas.coordinator.share_group.record_factory import group_metadata, state_partition_metadata
from barnabas.coordinator.share_group.share_group import ShareGroup
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.share_group_records import ShareGroupRecord
from barnabas.runtime.completion import AllDone, Completion
from barnabas.storage.format.share_image import UNDECIDED_OFFSET

NO_TOPIC_ID = UUID(int=0)
_UNKNOWN_TOPIC_MESSAGE = "There is no such topic or partition."


class TopicOffsets(NamedTuple):
    """Start offsets to set: (partition, start offset) pairs of one topic. Any offset is accepted, as in
    Kafka.
    """

    topic_name: str
    partitions: Sequence[tuple[int, int]]


class PartitionOutcome(NamedTuple):
    """The outcome of one partition; the error code `none` is success."""

    partition: int
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


class AlteredTopic(NamedTuple):
    """A topic's outcomes in the order asked for; the id is all zeros if there is no such topic."""

    topic_name: str
    topic_id: UUID
    partitions: list[PartitionOutcome]


class DeletedTopic(NamedTuple):
    """The outcome of a topic's offsets in the group; the id is all zeros after an error."""

    topic_name: str
    topic_id: UUID
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


def require_empty(group: ShareGroup) -> None:
    """NON_EMPTY_GROUP if the group has members."""
    if group.members:
        raise ApiError(ErrorCode.non_empty_group, "The group is not empty.")


def require_no_transaction(
    group: ShareGroup, partitions: Iterable[TopicIdPartition], share_state: ShareStateInitialiser
) -> None:
    """CONCURRENT_TRANSACTIONS if acknowledgements in these partitions wait for the end of a transaction."""
    for topic_id, partition in partitions:
        if share_state.is_in_transaction(group.group_id, topic_id, partition):
            raise ApiError(
                ErrorCode.concurrent_transactions,
                f"Records of partition {partition} are acknowledged in an open transaction. Try again when "
                "the transaction has ended.",
            )


def outcome_of(completion: Completion[None]) -> tuple[ErrorCode, str | None]:
    """The error code and message of a settled completion."""
    if completion.error is None:
        return ErrorCode.none, None
    if isinstance(completion.error, ApiError):
        return completion.error.code, completion.error.message
    return ErrorCode.kafka_storage_error, "The partition's log could not be written."


def alter_offsets(
    group: ShareGroup,
    topics: Iterable[TopicOffsets],
    catalog: TopicCatalog,
    share_state: ShareStateInitialiser,
    *,
    created: bool,
) -> Steps[list[AlteredTopic]]:
    """AlterShareGroupOffsets: begin the state of the partitions again at these offsets, at the group's epoch.

    With `created` the group is new: its record (Empty, epoch 1) is written with its first partition.
    """
    require_empty(group)
    topics = list(topics)
    shapes = {topic.topic_name: catalog.topic_by_name(topic.topic_name) for topic in topics}
    require_no_transaction(group, _named(topics, shapes), share_state)
    # First, so that no leader that is loaded meanwhile begins at 0 again.
    undone = without_zero_starts(group.state_partitions, _undecided(topics, shapes))
    if undone != group.state_partitions:
        yield Write([state_partition_metadata(group.group_id, undone)])
    completions: dict[tuple[str, int], Completion[None]] = {}
    for topic in topics:
        shape = shapes[topic.topic_name]
        for partition, start_offset in topic.partitions:
            if shape is not None and 0 <= partition < shape.partition_count:
                completions[topic.topic_name, partition] = _begin_at(
                    group, share_state, shape.topic_id, partition, start_offset
                )
    yield Settle(AllDone(completions.values()))
    records = _records_of_altered(group, shapes, completions, created=created)
    if records:
        yield Write(records)
    return [_altered_topic(topic, shapes[topic.topic_name], completions) for topic in topics]


def _named(
    topics: Iterable[TopicOffsets], shapes: Mapping[str, TopicShape | None]
) -> Iterator[TopicIdPartition]:
    """The partitions of existing topics."""
    for topic in topics:
        shape = shapes[topic.topic_name]
        if shape is not None:
            for partition, _ in topic.partitions:
                yield TopicIdPartition(shape.topic_id, partition)


def _undecided(
    topics: Iterable[TopicOffsets], shapes: Mapping[str, TopicShape | None]
) -> Iterator[TopicIdPartition]:
    """The partitions whose start the reset policy is to choose again."""
    for topic in topics:
        shape = shapes[topic.topic_name]
        if shape is not None:
            for partition, start_offset in topic.partitions:
                if start_offset == UNDECIDED_OFFSET:
                    yield TopicIdPartition(shape.topic_id, partition)


def _begin_at(
    group: ShareGroup, share_state: ShareStateInitialiser, topic_id: UUID, partition: int, start_offset: int
) -> Completion[None]:
    """-1 lets the reset policy choose the start again, so the recorded state is deleted."""
    if start_offset == UNDECIDED_OFFSET:
        return share_state.delete(group.group_id, group.incarnation, topic_id, partition)
    return share_state.initialise(
        group.group_id, group.incarnation, topic_id, partition, start_offset, group.group_epoch
    )


def _records_of_altered(
    group: ShareGroup,
    shapes: Mapping[str, TopicShape | None],
    completions: Mapping[tuple[str, int], Completion[None]],
    *,
    created: bool,
) -> list[ShareGroupRecord]:
    made: list[NewPartition] = []
    waiting: list[NewPartition] = []
    for (name, partition), completion in completions.items():
        shape = shapes[name]
        if shape is not None and completion.error is None:
            made.append(NewPartition(shape.topic_id, name, partition))
            waiting.extend(_others_of(shape, group))
    known = after_initialisation(group.state_partitions, made, waiting)
    if known == group.state_partitions:
        return []
    records = [state_partition_metadata(group.group_id, known)]
    if created:
        records.insert(0, group_metadata(group, group.group_epoch, group.metadata_hash))
    return records


def _others_of(shape: TopicShape, group: ShareGroup) -> list[NewPartition]:
    """All partitions of a topic that the group did not know. Those that are not altered follow the group's
    reset policy.
    """
    known = group.state_partitions
    if shape.topic_id in known.initialised or shape.topic_id in known.initialising:
        return []
    return [NewPartition(shape.topic_id, shape.name, partition) for partition in range(shape.partition_count)]


def _altered_topic(
    topic: TopicOffsets, shape: TopicShape | None, completions: Mapping[tuple[str, int], Completion[None]]
) -> AlteredTopic:
    outcomes: list[PartitionOutcome] = []
    for partition, _ in topic.partitions:
        completion = completions.get((topic.topic_name, partition))
        if completion is None:
            error: tuple[ErrorCode, str | None] = (
                ErrorCode.unknown_topic_or_partition,
                _UNKNOWN_TOPIC_MESSAGE,
            )
        else:
            error = outcome_of(completion)
        outcomes.append(PartitionOutcome(partition, *error))
    return AlteredTopic(topic.topic_name, shape.topic_id if shape else NO_TOPIC_ID, outcomes)


def delete_offsets(
    group: ShareGroup, topic_names: Sequence[str], catalog: TopicCatalog, share_state: ShareStateInitialiser
) -> Steps[list[DeletedTopic]]:
    """DeleteShareGroupOffsets: forget all partitions of the topics.

    The topics are first listed as being deleted, so that after a crash none of them counts as initialised.
    """
    require_empty(group)
    known = group.state_partitions
    found: dict[str, TopicShape] = {}
    outcomes: dict[str, DeletedTopic] = {}
    for name in topic_names:
        shape = catalog.topic_by_name(name)
        if shape is None:
            outcomes[name] = _not_deleted(name, _UNKNOWN_TOPIC_MESSAGE)
        elif shape.topic_id in known.initialised or shape.topic_id in known.deleting:
            found[name] = shape
        else:
            outcomes[name] = _not_deleted(name, "There is no offset information to delete.")
    errors = yield from delete_state(group, found.values(), share_state)
    if errors:
        deleted = {topic for topic, (code, _) in errors.items() if code is ErrorCode.none}
        left = without_topics(group.state_partitions, deleted)
        yield Write([state_partition_metadata(group.group_id, left)])
    for name, shape in found.items():
        code, message = errors[shape.topic_id]
        failed = code is not ErrorCode.none
        outcomes[name] = DeletedTopic(name, NO_TOPIC_ID if failed else shape.topic_id, code, message)
    return [outcomes[name] for name in dict.fromkeys(topic_names)]


def _not_deleted(topic_name: str, message: str) -> DeletedTopic:
    return DeletedTopic(topic_name, NO_TOPIC_ID, ErrorCode.unknown_topic_or_partition, message)


def delete_state(
    group: ShareGroup, shapes: Iterable[TopicShape], share_state: ShareStateInitialiser
) -> Steps[dict[UUID, tuple[ErrorCode, str | None]]]:
    """Mark the topics as being deleted, then delete the group's share state in them. Topic id -> outcome.

    The caller removes the marks, or the whole group. CONCURRENT_TRANSACTIONS, see `require_no_transaction`.
    """
    chosen = {shape.topic_id: shape for shape in shapes}
    if not chosen:
        return {}
    everything = (
        TopicIdPartition(shape.topic_id, partition)
        for shape in chosen.values()
        for partition in range(shape.partition_count)
    )
    require_no_transaction(group, everything, share_state)
    kept = without_topics(group.state_partitions, chosen)
    marks = {topic: shape.name for topic, shape in chosen.items()}
    marked = kept._replace(deleting={**kept.deleting, **marks})
    yield Write([state_partition_metadata(group.group_id, marked)])
    completions = {
        topic: [
            share_state.delete(group.group_id, group.incarnation, topic, partition)
            for partition in range(shape.partition_count)
        ]
        for topic, shape in chosen.items()
    }
    yield Settle(AllDone(completion for of_topic in completions.values() for completion in of_topic))
    return {topic: _worst(of_topic) for topic, of_topic in completions.items()}


def _worst(completions: Iterable[Completion[None]]) -> tuple[ErrorCode, str | None]:
    """The first error among the completions, or success."""
    for completion in completions:
        outcome = outcome_of(completion)
        if outcome[0] is not ErrorCode.none:
            return outcome
    return ErrorCode.none, None
