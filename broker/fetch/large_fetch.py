"""A Fetch request that names very many partitions: read, looked up and answered in turns.

What it means is the same, and so are its wait and its records, which are read in one piece as ever. Followers
of the metadata log name one partition; one that comes like this is answered as a consumer is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.broker.fetch.fetch_operation import FetchOperation, Told, is_topic_known
from barnabas.broker.fetch.fetch_sessions import (
    FINAL_EPOCH,
    FULL_FETCH_EPOCHS,
    NO_SESSION,
    PartitionKey,
    WantedPartition,
    merge_wanted,
)
from barnabas.broker.fetch.partition_fetch import missing
from barnabas.broker.network.dispatch import EncodedBody, Reply, RequestContext
from barnabas.broker.turns import Turns
from barnabas.protocol.decode.fetch import TOPICS_PER_STEP
from barnabas.protocol.encode.fetch import (
    TOPIC_ID_VERSION,
    FetchTopicResult,
    encode_fetch_end,
    encode_fetch_response,
    encode_fetch_start,
    encode_fetch_topics,
)
from barnabas.protocol.encode.parts import NodeEndpoint
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.messages.fetch import FetchBody
from barnabas.protocol.varint import Buffer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from barnabas.broker.broker import Broker
    from barnabas.coordinator.metadata.image import Topic
    from barnabas.protocol.decode.fetch import FetchSteps

_T = TypeVar("_T")

_UNREAD: Final = FetchBody(0, 0, 0, 0, NO_SESSION, FINAL_EPOCH, [], [])
"""Stands for the request until it is read."""
_PIECE: Final = 500
"""So many partitions, or topics of an answer, are worked on without a look at the time that was taken."""
_STEPS_PER_PARTITION: Final = 2


class LargeFetch(FetchOperation):
    """See `FetchOperation`."""

    def __init__(self, broker: Broker, context: RequestContext, steps: FetchSteps) -> None:
        super().__init__(broker, context, _UNREAD, (), None)
        self._steps = steps
        self._turns = Turns()

    def start(self) -> Reply:
        """See `FetchOperation`; FrameError if it is no request."""
        self.begin_when(self._prepare(), self._wait_when_open)
        return self

    async def _prepare(self) -> None:
        """Read the request, and have its partitions looked up and their logs open."""
        self._request = await self._read_request()
        try:
            partitions = await self._wanted()
        except ApiError as error:
            body = encode_fetch_response(self._context.api_version, error.code.value, NO_SESSION, ())
            self.set_result(EncodedBody(body))
            return
        closed = await self._look_up_in_turns(partitions)
        opening = self._broker.logs.open_all(closed) if closed else None
        if opening is not None:
            await opening

    async def _read_request(self) -> FetchBody:
        while True:
            try:
                next(self._steps)
            except StopIteration as end:
                request: FetchBody = end.value
                return request
            await self._turns.took(TOPICS_PER_STEP * _STEPS_PER_PARTITION)

    async def _wanted(self) -> list[WantedPartition]:
        """As the session has it, if the request goes on with one; ApiError if that isn't there."""
        sessions, request = self._broker.fetch_sessions, self._request
        if request.session_epoch not in FULL_FETCH_EPOCHS:
            by_id = self._context.api_version >= TOPIC_ID_VERSION
            session = sessions.find(request.session_id, request.session_epoch, by_id=by_id)
            now_ms = self._broker.clock.monotonic_ms()
            if sessions.advance(session, request.topics, request.forgotten_topics, now_ms):
                self._session = session
                return list(session.partitions.values())
        elif request.session_id != NO_SESSION:
            sessions.close(request.session_id)
        wanted: dict[PartitionKey, WantedPartition] = {}
        for piece in _pieces(request.topics):
            merge_wanted(wanted, piece)
            await self._turns.took(len(piece) * _STEPS_PER_PARTITION)
        return list(wanted.values())

    async def _look_up_in_turns(self, partitions: Sequence[WantedPartition]) -> list[tuple[Topic, int]]:
        """Which logs are not open. Topics that come or go meanwhile are seen at the end of the wait for them,
        when all is looked up once more.
        """
        closed: list[tuple[Topic, int]] = []
        found: list[WantedPartition] = []
        unfound: list[WantedPartition] = []
        for piece in _pieces(partitions):
            self._partitions = piece
            closed += self._look_up()
            for one in piece:
                (unfound if one.is_missing else found).append(one)
            await self._turns.took(len(piece) * _STEPS_PER_PARTITION)
        self._partitions = found
        told: Told = []
        for piece in _pieces(sorted(unfound, key=is_topic_known)):
            told += [(one, missing(one)) for one in piece]
            await self._turns.took(len(piece) * _STEPS_PER_PARTITION)
        self._missing = told
        return closed

    def _answer(
        self,
        error_code: ErrorCode,
        session_id: int,
        told: Told,
        record_bytes: int = 0,
        *,
        throttle_ms: int = 0,
    ) -> None:
        body: list[Buffer] = []
        encoding = self._encode_in_turns(body, error_code, session_id, told)
        self.begin_when(encoding, lambda: self._end(body, record_bytes, throttle_ms))

    async def _encode_in_turns(
        self, body: list[Buffer], error_code: ErrorCode, session_id: int, told: Told
    ) -> None:
        endpoints: list[NodeEndpoint] = []
        topics: list[FetchTopicResult] = []
        for piece in _pieces_by_topic(told):
            topics += self._by_topic(piece, endpoints)
            await self._turns.took(len(piece) * _STEPS_PER_PARTITION)
        version = self._context.api_version
        part = encode_fetch_start(version, error_code.value, session_id, len(topics))
        for topic_piece in _pieces(topics):
            part = encode_fetch_topics(version, topic_piece, body, part)
            await self._turns.took(sum(len(topic.partitions) for topic in topic_piece))
        body.append(part + encode_fetch_end(version, endpoints))


def _pieces(items: Sequence[_T]) -> Iterator[Sequence[_T]]:
    for start in range(0, len(items), _PIECE):
        yield items[start : start + _PIECE]


def _pieces_by_topic(told: Told) -> Iterator[Told]:
    """Larger, where one topic has more."""
    start = 0
    while start < len(told):
        end = min(start + _PIECE, len(told))
        while end < len(told) and told[end][0].key[0] == told[end - 1][0].key[0]:
            end += 1
        yield told[start:end]
        start = end
