"""A member of a share group that sends each request of the protocol itself, and the answers it gets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.primitive import to_milliseconds
from barnabas.protocol.record_batch import iterate_headers
from barnabas.protocol.records import iterate_records

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
GROUP = "group"

AckBatches = Sequence[tuple[int, ...]]
"""Each with first offset, last offset and the types."""
Acks = Mapping[TopicIdPartition, AckBatches] | AckBatches
"""By partition, or for the member's first partition."""


class Requests(Protocol):
    """A connection to a broker: the conformance lab's, or the simulation's."""

    def send(self, api: str, version: int | None = None, **values: Any) -> Any: ...

    async def answered(self, pending: Any) -> Any: ...

    async def ask(self, api: str, version: int | None = None, **values: Any) -> Any: ...

    def disconnect(self) -> None: ...


class FetchedPartition(NamedTuple):
    """One partition's part of a ShareFetch response; `records` are all records of the response, as (offset,
    value).
    """

    error: int
    acknowledge_error: int
    acquired: list[tuple[int, int, int]]
    records: list[tuple[int, bytes | None]]

    @property
    def offsets(self) -> list[int]:
        return [offset for offset, _ in self.records]


class Fetched(NamedTuple):
    """The answer to a ShareFetch."""

    error: int
    lock_ms: int
    partitions: dict[TopicIdPartition, FetchedPartition]

    @property
    def acquired(self) -> list[tuple[int, int, int]]:
        """(first offset, last offset, delivery count) of all acquired ranges."""
        return [entry for partition in self.partitions.values() for entry in partition.acquired]

    @property
    def errors(self) -> list[int]:
        return [partition.error for partition in self.partitions.values()]

    @property
    def acknowledge_errors(self) -> list[int]:
        return [partition.acknowledge_error for partition in self.partitions.values()]


class Acknowledged(NamedTuple):
    """The answer to a ShareAcknowledge; `lock_ms` is None if the version has no such field."""

    error: int
    lock_ms: int | None
    partitions: dict[TopicIdPartition, int]

    @property
    def errors(self) -> list[int]:
        return list(self.partitions.values())


class ShareMember:
    """One member id in one group over one connection. `epoch` is the next share session epoch."""

    def __init__(
        self,
        client: Requests,
        partitions: Sequence[TopicIdPartition] = (),
        *,
        group_id: str = GROUP,
        member_id: str = "member-1",
    ) -> None:
        self.client = client
        self.partitions = list(partitions)
        self.group_id = group_id
        self.member_id = member_id
        self.epoch = 0

    # The group.

    async def heartbeat(self, member_epoch: int, topics: Sequence[str] | None = None, **values: Any) -> Any:
        asked: dict[str, Any] = {"group_id": self.group_id, "member_id": self.member_id, **values}
        return await self.client.ask(
            "share_group_heartbeat", member_epoch=member_epoch, subscribed_topic_names=topics, **asked
        )

    async def join(self, *topics: str) -> Any:
        response = await self.heartbeat(0, topics)
        assert response.error_code == 0, response
        return response

    # Fetching.

    def start_fetch(
        self,
        acks: Acks = (),
        *,
        add: Iterable[TopicIdPartition] | None = None,
        forget: Iterable[TopicIdPartition] = (),
        epoch: int | None = None,
        version: int = 2,
        **values: Any,
    ) -> Any:
        """Sends a ShareFetch. The first one of a session names the member's partitions, later ones none."""
        epoch = self.epoch if epoch is None else epoch
        if add is None:
            add = self.partitions if epoch == 0 else ()
        asked = {
            "group_id": self.group_id,
            "member_id": self.member_id,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
            **values,
        }
        pending = self.client.send(
            "share_fetch",
            version,
            share_session_epoch=epoch,
            topics=_topics(add, self._by_partition(acks)),
            forgotten_topics_data=[
                {"topic_id": one.topic_id, "partitions": [one.partition]} for one in forget
            ],
            **asked,
        )
        self._move_on(epoch)
        return pending

    async def fetch(self, acks: Acks = (), **values: Any) -> Fetched:
        """A fetch with max_wait_ms 0."""
        return fetched(await self.client.answered(self.start_fetch(acks, **values)))

    async def take(self, max_records: int = 500, **values: Any) -> list[tuple[int, int, int]]:
        """Fetches without errors; returns the acquired ranges."""
        got = await self.fetch(max_records=max_records, **values)
        assert got.error == 0, got
        assert not any(got.errors), got
        return got.acquired

    # Acknowledging.

    def start_acknowledge(
        self, acks: Acks, *, epoch: int | None = None, version: int = 2, renew: bool = False
    ) -> Any:
        epoch = self.epoch if epoch is None else epoch
        pending = self.client.send(
            "share_acknowledge",
            version,
            group_id=self.group_id,
            member_id=self.member_id,
            share_session_epoch=epoch,
            is_renew_ack=renew,
            topics=_topics((), self._by_partition(acks)),
        )
        self._move_on(epoch)
        return pending

    async def acknowledge(self, acks: Acks, **values: Any) -> Acknowledged:
        return acknowledged(await self.client.answered(self.start_acknowledge(acks, **values)))

    async def accept(self, first_offset: int, last_offset: int) -> None:
        """Acknowledges records of the first partition, without an error."""
        result = await self.acknowledge([(first_offset, last_offset, ACCEPT)])
        assert result.error == 0, result
        assert result.errors == [0], result

    async def leave_session(self) -> None:
        """The last request of the session, as a closing client sends it."""
        result = await self.acknowledge((), epoch=-1)
        assert result.error == 0, result

    def _by_partition(self, acks: Acks) -> Mapping[TopicIdPartition, AckBatches]:
        if isinstance(acks, Mapping):
            return acks
        return {self.partitions[0]: acks} if acks else {}

    def _move_on(self, epoch: int) -> None:
        if epoch >= 0:
            self.epoch = epoch + 1


def fetched(response: Any) -> Fetched:
    partitions: dict[TopicIdPartition, FetchedPartition] = {}
    for topic in response.responses:
        for one in topic.partitions:
            acquired = [
                (entry.first_offset, entry.last_offset, entry.delivery_count)
                for entry in one.acquired_records
            ]
            records = read_records(one.records)
            answer = FetchedPartition(one.error_code, one.acknowledge_error_code, acquired, records)
            partitions[TopicIdPartition(topic.topic_id or UUID(int=0), one.partition_index)] = answer
    return Fetched(response.error_code, _ms(response.acquisition_lock_timeout), partitions)


def acknowledged(response: Any) -> Acknowledged:
    partitions = {
        TopicIdPartition(topic.topic_id or UUID(int=0), one.partition_index): int(one.error_code)
        for topic in response.responses
        for one in topic.partitions
    }
    lock = getattr(response, "acquisition_lock_timeout", None)
    return Acknowledged(response.error_code, None if lock is None else _ms(lock), partitions)


def record_offsets(records: Any) -> list[int]:
    """The offsets of all records in a response's bytes."""
    return [offset for offset, _ in read_records(records)]


def read_records(records: Any) -> list[tuple[int, bytes | None]]:
    """Offset and value of all records in a response's bytes, without transaction markers."""
    data = bytes(records or b"")
    return [
        (record.offset, record.value)
        for position, header in iterate_headers(data)
        if not (header.is_control and header.is_transactional)
        for record in iterate_records(data, position)
    ]


def _ms(duration: Any) -> int:
    return to_milliseconds(duration)


def _topics(
    added: Iterable[TopicIdPartition], acks: Mapping[TopicIdPartition, AckBatches]
) -> list[dict[str, Any]]:
    by_topic: dict[UUID, list[dict[str, Any]]] = {}
    for partition in dict.fromkeys([*added, *acks]):
        batches = [
            {"first_offset": first, "last_offset": last, "acknowledge_types": types}
            for first, last, *types in acks.get(partition, ())
        ]
        by_topic.setdefault(partition.topic_id, []).append(
            {"partition_index": partition.partition, "acknowledgement_batches": batches}
        )
    return [{"topic_id": topic_id, "partitions": partitions} for topic_id, partitions in by_topic.items()]
