"""The decision that a batch is to be committed, which is written before any transaction is ended.

It is kept in the committed offsets of a consumer group of the sink: the offset counts the decisions, and the
metadata name the transactions. If they are longer than Kafka allows for one partition, they go on in the next
"partitions". One transaction commits them all, so the decision is there as a whole or not at all.

    <version>/<batch id>/<part>/<parts>/<run>-<task>.<attempt>:<producer id>:<producer epoch>,...
    <version>/<batch id>/0/1/withdrawn     none of its transactions was committed, and none will be
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.client.group.offsets import CommittedOffset
from barnabas.client.produce.transactions import Writer
from barnabas.client.topic_partition import TopicPartition
from barnabas.pipeline.errors import PipelineError

PART_LENGTH_MAX: Final = 3_800
"""Characters, all of them ASCII. Kafka's `offset.metadata.max.bytes` is 4,096."""

_VERSION: Final = "1"
_WITHDRAWN: Final = "withdrawn"


class Names(NamedTuple):
    """The names of a query's transactions and of its group."""

    base: str

    @property
    def group(self) -> str:
        return self.base

    @property
    def driver(self) -> str:
        """The transactional id under which decisions are written."""
        return f"{self.base}-driver"

    @property
    def tasks(self) -> str:
        """The prefix of the tasks' transactional ids."""
        return f"{self.base}-task-"

    def task(self, task: int, attempt: int, run: str = "") -> str:
        """The transactional id of one attempt of a task, in one run of the query."""
        return f"{self.tasks}{run}{'-' if run else ''}{task}.{attempt}"


class Decision(NamedTuple):
    """The batch that was decided last, and the transactions that are to be committed."""

    number: int
    """The number of earlier decisions."""
    batch_id: int
    topic: str
    """The topic for which the group's offsets are committed: one of the written topics."""
    writers: tuple[Writer, ...]
    is_withdrawn: bool = False

    def covers(self, batch_id: int) -> bool:
        """Whether the batch's records are to be committed, and not written again."""
        return not self.is_withdrawn and self.batch_id == batch_id


def encode_decision(decision: Decision, names: Names) -> dict[int, CommittedOffset]:
    """By "partition", the offset and the metadata for the group to commit."""
    parts = [_WITHDRAWN] if decision.is_withdrawn else _parts(decision.writers, names)
    head = f"{_VERSION}/{decision.batch_id}"
    return {
        index: CommittedOffset(decision.number, f"{head}/{index}/{len(parts)}/{part}")
        for index, part in enumerate(parts)
    }


def decode_decision(offsets: Mapping[TopicPartition, CommittedOffset], names: Names) -> Decision | None:
    """The decision from the group's offsets; None if the group has committed nothing.

    Parts of earlier decisions may remain, if those had more parts or another topic; they are ignored. Raises
    `PipelineError` for offsets that a sink didn't write.
    """
    if not offsets:
        return None
    number = max(committed.offset for committed in offsets.values())
    topics = {topic for (topic, _), committed in offsets.items() if committed.offset == number}
    last = [committed.metadata for committed in offsets.values() if committed.offset == number]
    try:
        batch_ids, indexes, counts, texts = zip(*sorted(map(_split, last)), strict=True)
        if len(set(batch_ids)) > 1 or list(indexes) != list(range(len(last))) or set(counts) != {len(last)}:
            raise ValueError("parts are missing")
        (topic,) = topics
        if texts == (_WITHDRAWN,):
            return Decision(number, batch_ids[0], topic, (), is_withdrawn=True)
        writers = [_writer(writer, names) for text in texts for writer in text.split(",")]
        return Decision(number, batch_ids[0], topic, tuple(writers))
    except ValueError as error:
        raise PipelineError(
            f"The group {names.group} has offsets that no sink wrote ({error}): {last}. "
            "Choose another transactionalIdPrefix."
        ) from error


def _parts(writers: Sequence[Writer], names: Names) -> list[str]:
    parts: list[str] = []
    for writer in writers:
        text = f"{_suffix(writer, names)}:{writer.producer_id}:{writer.producer_epoch}"
        if parts and len(parts[-1]) + len(text) < PART_LENGTH_MAX:
            parts[-1] += f",{text}"
        else:
            parts.append(text)
    return parts


def _suffix(writer: Writer, names: Names) -> str:
    assert writer.transactional_id is not None, "a decision is about transactions"
    return writer.transactional_id.removeprefix(names.tasks)


def _split(metadata: str) -> tuple[int, int, int, str]:
    version, batch_id, index, count, text = metadata.split("/", 4)
    if version != _VERSION:
        raise ValueError(f"version {version}")
    return int(batch_id), int(index), int(count), text


def _writer(text: str, names: Names) -> Writer:
    suffix, producer_id, producer_epoch = text.split(":")
    return Writer(names.tasks + suffix, int(producer_id), int(producer_epoch))
