"""The means of a history: connections to a broker, names of its own, random choices, and the recorded
answers.

A history is a coroutine with a `Stage` as argument. It may use the answers it gets, so it works with
generated ids and offsets. As long as the answers are equal, so are its requests.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

from barnabas.protocol.record_batch import build_batch
from tests.differential.peers import Connection, ConnectionEndedError, Peer
from tests.differential.plain import Names, Plain, Plainly, is_mapping, is_sequence
from tests.differential.renumbering import Numbering, renumbered
from tests.differential.versions import newest

NEWEST = -1
"""A version number: the newest version of the API that Apache Kafka speaks."""

BROKEN_OFF = "history"
"""The API of the last observation of a history that could not continue."""

RECORDS_AT_MS = 1_700_000_000_000
"""The timestamp of produced records."""

_CATCHING_UP_MS = 20
_CATCHING_UP_TRIES = 500


class Observation(NamedTuple):
    """One answer; `asked` is its request, for people who examine a difference."""

    api: str
    version: int
    asked: str
    answer: Plain


class Sent(NamedTuple):
    """A sent request; `Stage.answer` waits for its answer."""

    connection: int
    api: str
    version: int
    asked: str
    pending: Any


class Stage:
    """One broker as one history sees it."""

    def __init__(
        self, peer: Peer, *, seed: str, unique: str, too_new: Mapping[str, int] | None = None
    ) -> None:
        """The history's actions follow from `seed`; `unique` distinguishes its topics and groups from all
        others.

        `too_new` has versions by API: they and later ones are replaced by the one below.
        """
        self.chance = Random(seed)
        self.observed: list[Observation] = []
        self.client_id = "client"
        """For the connections opened from now on."""
        self._peer = peer
        self._too_new = too_new or {}
        self._unique = unique
        self._names = Names(unique)
        self._plainly = Plainly(self._names)
        self._connections: dict[int, Connection] = {}
        self._numberings: dict[tuple[str, int], Numbering] = {}

    def name(self, name: str) -> str:
        """The name of a topic or group of this history's own."""
        return name + self._unique

    def know(self, topic_id: UUID) -> None:
        """Give an id its name now, because the first answer with it may have other ids before it, in any
        order.
        """
        self._plainly(topic_id)

    def numbering(self, topic_id: UUID, partition: int) -> Numbering:
        """The offsets of a partition in which the broker's own records may lie between those of the data.
        From the first call on, answers have numbers in place of them.
        """
        return self._numberings.setdefault((self._plainly(topic_id), partition), Numbering())

    async def send(self, connection: int, api: str, version: int, **values: Any) -> Sent:
        """Send a request on one of the history's connections, which is opened at its first use."""
        sent = await self._send(connection, api, version, values)
        return sent._replace(asked=str(self._plainly(values_of(values))))

    async def answer(self, sent: Sent, shown: Callable[[Any], Any] | None = None) -> Any:
        """The answer, which is recorded; None if the connection was closed instead, or no answer arrived.
        `shown` makes the recorded form.
        """
        response, failure = await self._receive(sent)
        if shown is not None and not failure:
            response = shown(response)
        answer = failure or renumbered(self._plainly(response), self._numberings)
        self.observed.append(Observation(sent.api, sent.version, sent.asked, answer))
        return response

    def is_answered(self, sent: Sent) -> bool:
        """Whether the answer of a sent request has arrived."""
        return self._connections[sent.connection].is_answered(sent.pending)

    async def settle(self) -> None:
        """Let everything finish that does not wait for time: earlier requests have taken effect before the
        answer to another.
        """
        await self._peer.settle()
        await self.quietly(0, "describe_groups", groups=[self.name("g")])
        await self._peer.settle()

    async def ask(
        self,
        connection: int,
        api: str,
        version: int = NEWEST,
        *,
        shown: Callable[[Any], Any] | None = None,
        **values: Any,
    ) -> Any:
        """Send a request and record its answer, in the form that `shown` makes."""
        return await self.answer(await self.send(connection, api, version, **values), shown)

    async def quietly(self, connection: int, api: str, version: int = NEWEST, **values: Any) -> Any:
        """The same without recording the answer or naming its ids, to find out when a broker is ready."""
        return (await self._receive(await self._send(connection, api, version, values)))[0]

    def record(self, api: str, version: int, values: dict[str, Any], response: Any) -> None:
        """Record the answer to a request that was sent quietly with these values."""
        asked = str(self._plainly(values_of(values)))
        answer = renumbered(self._plainly(response), self._numberings)
        self.observed.append(Observation(api, version, asked, answer))

    async def until(self, is_reached: Callable[[], Awaitable[bool]]) -> None:
        """Repeat a request until a change is visible for which a broker needs a while."""
        for _ in range(_CATCHING_UP_TRIES):
            if await is_reached():
                return
            await self._peer.elapse(_CATCHING_UP_MS)
        raise TimeoutError("the awaited change did not happen")

    async def elapse(self, ms: int) -> None:
        await self._peer.elapse(ms)

    def disconnect(self, connection: int) -> None:
        """Close a connection, if there is one."""
        ended = self._connections.pop(connection, None)
        if ended is not None:
            ended.close()

    def close(self) -> None:
        for connection in list(self._connections):
            self.disconnect(connection)

    async def _send(self, connection: int, api: str, version: int, values: dict[str, Any]) -> Sent:
        if connection not in self._connections:
            self._connections[connection] = await self._peer.connect(self.client_id)
        version = newest(api) if version == NEWEST else version
        if api in self._too_new:
            version = min(version, self._too_new[api] - 1)
        pending = self._connections[connection].send(api, version, values)
        return Sent(connection, api, version, "", pending)

    async def _receive(self, sent: Sent) -> tuple[Any, str]:
        """The response, or why there is none."""
        try:
            response = await self._connections[sent.connection].answer(sent.pending)
        except ConnectionEndedError:
            self.disconnect(sent.connection)
            return None, "the connection was closed"
        except TimeoutError:
            self.disconnect(sent.connection)
            return None, "no answer came"
        return response, ""

    # Common parts of histories.

    async def create_topic(self, name: str, partition_count: int = 1, **configs: str) -> UUID:
        """A topic that is ready for use; `__` in a setting's name stands for a dot."""
        topic = {
            "name": self.name(name),
            "num_partitions": partition_count,
            "replication_factor": 1,
            "configs": [{"name": key.replace("__", "."), "value": value} for key, value in configs.items()],
        }
        response = await self.ask(0, "create_topics", topics=[topic], timeout=10_000)
        topic_id: UUID = response.topics[0].topic_id
        await self.until(lambda: self.is_led(name, partition_count))
        return topic_id

    async def is_led(self, name: str, partition_count: int) -> bool:
        """Whether all partitions of a topic can be used."""
        partitions = [
            {"partition_index": index, "timestamp": -1, "current_leader_epoch": -1}
            for index in range(partition_count)
        ]
        topics = [{"name": self.name(name), "partitions": partitions}]
        response = await self.quietly(0, "list_offsets", topics=topics, replica_id=-1)
        return all(one.error_code == 0 for topic in response.topics for one in topic.partitions)

    async def delete_topic(self, name: str) -> None:
        """Delete a topic, and wait until it is gone in all views."""
        await self.quietly(0, "delete_topics", 5, topic_names=[self.name(name)], timeout=10_000)
        await self.until(lambda: self._is_gone(name))

    async def topic_id(self, name: str) -> UUID | None:
        """The present id of a topic; None if there is no such topic."""
        topic = {"name": self.name(name), "topic_id": None}
        response = await self.quietly(0, "metadata", topics=[topic], allow_auto_topic_creation=False)
        topic_id: UUID | None = response.topics[0].topic_id
        return topic_id

    async def _is_gone(self, name: str) -> bool:
        return await self.topic_id(name) is None

    async def produce(
        self,
        topic_id: UUID,
        partition: int,
        *batches: bytes,
        acks: int = -1,
        transactional_id: str | None = None,
    ) -> Any:
        """One partition's answer to a Produce request."""
        data = {"index": partition, "records": b"".join(batches)}
        response = await self.ask(
            0,
            "produce",
            transactional_id=transactional_id,
            acks=acks,
            timeout=10_000,
            topic_data=[{"topic_id": topic_id, "partition_data": [data]}],
        )
        return response.responses[0].partition_responses[0]


def batch(size: int, *, value_bytes: int = 4, **options: int) -> bytes:
    """A batch of records; each value is the record's number in it."""
    records = [(b"key", str(number).encode().rjust(value_bytes, b".")) for number in range(size)]
    return build_batch(0, records, leader_epoch=-1, timestamp_ms=RECORDS_AT_MS, **options)


def values_of(values: Any) -> Any:
    """A request's values with long bytes cut short, for people."""
    if is_mapping(values):
        return [f"{name}={values_of(value)}" for name, value in values.items()]
    if is_sequence(values):
        return [values_of(value) for value in values]
    return values[:24] if isinstance(values, bytes) else values
