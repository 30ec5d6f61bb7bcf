"""One share session over one connection: builds its requests and handles its responses (KIP-932).

One fetch and acknowledgements may be outstanding at the same time. An error of the session as a whole ends
the exchange with an exception; the next exchange needs another connection. `ShareLeader` decides when each
request is sent.

After a lost connection the next exchange repeats the requests without an answer, before it opens its own
session. Barnabas then gives the first answer again, and no request has a second effect. A broker that has no
answer to a repeated request refuses it, and its acknowledgements have failed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.metadata import Leader
from barnabas.client.errors import error_code
from barnabas.client.network.connection import Connection
from barnabas.client.record_content import KeyT, ValueT
from barnabas.client.share.acknowledgements import AcknowledgeType, Lot, ack_batches, release_delays
from barnabas.client.share.callback_guard import CallbackGuard
from barnabas.client.share.ledger import Ledger
from barnabas.client.share.options import Settings
from barnabas.client.share.prefetch_queue import PrefetchQueue
from barnabas.client.share.record import Holder, Outcome
from barnabas.client.share.record_reader import Delivery, RecordReader
from barnabas.client.share.session import (
    FINAL_EPOCH,
    FIRST_EPOCH,
    NO_DELAYS,
    Batches,
    Delays,
    ShareSession,
    ack_topics,
    forgotten_topics,
)
from barnabas.client.share.session_errors import check_response, temporary_code
from barnabas.protocol.client.consumer_apis import ACKNOWLEDGE_IN_TRANSACTION, SHARE_ACKNOWLEDGE, SHARE_FETCH
from barnabas.protocol.client.share_acknowledge_response import ShareAcknowledgeReply
from barnabas.protocol.client.share_fetch_response import ShareFetchReply
from barnabas.protocol.decode.acknowledging_transaction import AcknowledgingTransaction
from barnabas.protocol.decode.share_acknowledge import ShareAcknowledgeBody
from barnabas.protocol.decode.share_fetch import ShareFetchBody
from barnabas.protocol.encode.share_acknowledge import ShareAcknowledgePartitionResult
from barnabas.protocol.encode.share_fetch import ShareFetchPartitionResult
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.extended import RELEASE_DELAY
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.message_parts import NodeEndpoint

log = logging.getLogger(__name__)

_MS_PER_SECOND: Final = 1000
_BATCH_OPTIMIZED: Final = 0
_RECORD_LIMIT: Final = 1
_NO_LEADER: Final = -1

_LEADER_CHANGED: Final = frozenset({ErrorCode.not_leader_or_follower, ErrorCode.fenced_leader_epoch})
_METADATA_IS_STALE: Final = _LEADER_CHANGED | {
    ErrorCode.unknown_topic_or_partition,
    ErrorCode.unknown_topic_id,
}


@dataclass(frozen=True, slots=True)
class ShareReading(Generic[KeyT, ValueT]):
    """The state that all leaders of one consumer share."""

    group_id: str
    member_id: str
    settings: Settings
    cluster: Cluster
    reader: RecordReader[KeyT, ValueT]
    queue: PrefetchQueue[KeyT, ValueT]
    guard: CallbackGuard
    """Keeps `on_outcome` from acknowledging records."""
    on_outcome: Callable[[Outcome], None]
    on_stale_metadata: Callable[[], None]
    """Called when a broker's answer contradicts the view of the cluster."""
    on_leader_changed: Callable[[], None]
    """Called when a broker has named another leader and the view was updated."""


class _Request(NamedTuple):
    """An outstanding request."""

    body: ShareFetchBody | ShareAcknowledgeBody
    answer: asyncio.Future[Any]
    lots: dict[TopicIdPartition, Lot]
    sent_at_ms: int
    is_repeated: bool

    @property
    def is_fetch(self) -> bool:
        return isinstance(self.body, ShareFetchBody)


class UnansweredRequest(NamedTuple):
    """A request whose connection was lost before the answer, and the lots that wait for its results."""

    body: ShareFetchBody | ShareAcknowledgeBody
    lots: Sequence[Lot]


class ShareExchange(Generic[KeyT, ValueT]):
    """The session of one connection, from its first fetch to its end."""

    def __init__(
        self,
        connection: Connection,
        reading: ShareReading[KeyT, ValueT],
        ledger: Ledger,
        holder: Holder,
        on_answer: Callable[[], None],
    ) -> None:
        """`on_answer` is called when there is an answer to `collect`."""
        self.lock_ms = 0
        """The duration of locks in the broker's last response; 0 before the first fetch is answered."""
        self.fetch_failed = False
        """Whether the last fetch returned only errors."""
        self._connection = connection
        self._reading = reading
        self._ledger = ledger
        self._holder = holder
        self._on_answer = on_answer
        self._session = ShareSession()
        self._is_established = False
        self._under_way: list[_Request] = []
        self._loop = asyncio.get_running_loop()

    @property
    def is_established(self) -> bool:
        """Whether the broker has confirmed the session."""
        return self._is_established

    @property
    def fetches(self) -> bool:
        """Whether a fetch is outstanding."""
        return any(request.is_fetch for request in self._under_way)

    @property
    def acknowledges(self) -> bool:
        """Whether a ShareAcknowledge request is outstanding."""
        return any(not request.is_fetch for request in self._under_way)

    @property
    def acknowledgements_ride(self) -> bool:
        """Whether a fetch with acknowledgements is outstanding; it may wait for records before its answer."""
        return any(request.is_fetch and request.lots for request in self._under_way)

    def fetch(
        self,
        wanted: frozenset[TopicIdPartition],
        record_count: int,
        lots: Sequence[Lot],
        *,
        max_wait_ms: int,
    ) -> None:
        """Ask for records of exactly these partitions, and send these lots along; none may renew locks."""
        settings, step = self._reading.settings, self._session.fetch(wanted)
        opens = step.share_session_epoch == FIRST_EPOCH
        body = ShareFetchBody(
            group_id=self._reading.group_id,
            member_id=self._reading.member_id,
            share_session_epoch=step.share_session_epoch,
            max_wait_ms=max_wait_ms,
            min_bytes=settings.min_bytes,
            max_bytes=settings.max_bytes,
            max_records=record_count,
            batch_size=record_count,
            share_acquire_mode=_RECORD_LIMIT if settings.limits_records else _BATCH_OPTIMIZED,
            is_renew_ack=False,
            topics=ack_topics(step.added, _batches(lots), self._delays(lots)),
            forgotten_topics=forgotten_topics(step.forgotten),
            lock_duration_ms=settings.record_lock_duration_ms if opens else None,
            repeats_requests=opens,
            wants_runs=opens,
        )
        self._send(body, lots)

    def acknowledge(
        self,
        lots: Sequence[Lot],
        *,
        transaction: AcknowledgingTransaction | None = None,
        is_final: bool = False,
    ) -> None:
        """Acknowledge, perhaps in a transaction; the final request ends the session, and the broker releases
        the records left in it.
        """
        body = ShareAcknowledgeBody(
            group_id=self._reading.group_id,
            member_id=self._reading.member_id,
            share_session_epoch=FINAL_EPOCH if is_final else self._session.acknowledge(),
            is_renew_ack=any(lot.renews for lot in lots),
            topics=ack_topics((), _batches(lots), self._delays(lots)),
            transaction=transaction,
        )
        self._send(body, lots)

    def repeat(self, requests: Iterable[UnansweredRequest]) -> None:
        """Send these requests of the last session again; the next fetch opens the new session."""
        assert not self._session.is_open, "an open session has used up their epochs"
        for request in requests:
            self._send(request.body, request.lots, is_repeated=True)

    def unanswered(self) -> list[UnansweredRequest]:
        """The outstanding requests, to be repeated after the loss of the connection.

        Renewals are left out, because the lost connection has ended the locks. No request is repeated twice,
        because the session that was opened behind it may have its epoch by now.
        """
        return [
            UnansweredRequest(request.body, [lot for lot in request.lots.values() if not lot.renews])
            for request in self._under_way
            if not request.is_repeated and request.body.share_session_epoch != FIRST_EPOCH
        ]

    def collect(self) -> bool:
        """Handle the answers that have arrived, in the order of the requests; whether one was a fetch.

        Raises `BrokerUnavailableError` for a lost connection, `SessionLostError`, and `BrokerError` for a
        lasting error.
        """
        fetched = False
        while self._under_way and self._under_way[0].answer.done():
            reply = self._under_way[0].answer.result()
            request = self._under_way.pop(0)
            if request.is_repeated and reply.error_code:
                self._ledger.give_up(request.lots.values(), ErrorCode.network_exception)
            elif request.is_fetch:
                fetched = True
                self._take_fetch(request, reply)
            else:
                self._take_acknowledge(request, reply)
        return fetched

    def close(self) -> None:
        """Close the connection; answers to outstanding requests are dropped."""
        for request in self._under_way:
            if not request.answer.cancel() and not request.answer.cancelled():
                request.answer.exception()  # asyncio warns about exceptions that are never retrieved
        self._under_way.clear()
        self._connection.close()

    def _delays(self, lots: Sequence[Lot]) -> Delays:
        """The delays that the lots ask for. A broker without the extension gets none: `ShareLeader` has
        refused them, except those of 0, and such a broker makes no record wait.
        """
        if not self._connection.supports(RELEASE_DELAY):
            return NO_DELAYS
        return {lot.partition: release_delays(lot.acknowledgements) for lot in lots}

    def _send(
        self,
        body: ShareFetchBody | ShareAcknowledgeBody,
        lots: Iterable[Lot],
        *,
        is_repeated: bool = False,
    ) -> None:
        answer: asyncio.Future[Any]
        if isinstance(body, ShareFetchBody):
            answer = self._connection.start(SHARE_FETCH, body, wait_ms=body.max_wait_ms)
        else:
            api = SHARE_ACKNOWLEDGE if body.transaction is None else ACKNOWLEDGE_IN_TRANSACTION
            answer = self._connection.start(api, body)
        by_partition = {lot.partition: lot for lot in lots}
        self._under_way.append(_Request(body, answer, by_partition, self._now_ms(), is_repeated))
        answer.add_done_callback(lambda _: self._on_answer())

    def _now_ms(self) -> int:
        return int(self._loop.time() * _MS_PER_SECOND)

    def _take_fetch(self, request: _Request, reply: ShareFetchReply) -> None:
        check_response(reply.error_code, reply.error_message)
        self.lock_ms = max(reply.acquisition_lock_timeout_ms, 1)
        if not (self._is_established or request.is_repeated):
            self._is_established = True
            self._compare_lock_duration()
        found_records = failed = False
        for topic_id, results in reply.topics:
            for result in results:
                partition = TopicIdPartition(topic_id, result.partition_index)
                lot = request.lots.pop(partition, None)
                if lot is not None:
                    code = error_code(result.acknowledge_error_code)
                    self._complete(request, lot, code, result.acknowledge_error_message)
                if result.error_code:
                    failed = True
                    self._take_error(partition, result, reply.node_endpoints)
                if result.acquired:
                    found_records = True
                    self._take_records(partition, result)
        self.fetch_failed = failed and not found_records
        self._complete_unanswered(request)

    def _compare_lock_duration(self) -> None:
        """A broker that does not know the tag locks records for the group's time."""
        wanted_ms = self._reading.settings.record_lock_duration_ms
        if wanted_ms not in (None, self.lock_ms):
            message = "%s locks records for %d ms instead of %d ms: it does not know record_lock_duration_ms"
            log.warning(message, self._connection.address, self.lock_ms, wanted_ms)

    def _take_acknowledge(self, request: _Request, reply: ShareAcknowledgeReply) -> None:
        check_response(reply.error_code, reply.error_message)
        self.lock_ms = reply.acquisition_lock_timeout_ms or self.lock_ms
        for topic_id, results in reply.topics:
            for result in results:
                partition = TopicIdPartition(topic_id, result.partition_index)
                code = error_code(result.error_code)
                if code in _LEADER_CHANGED:
                    self._note_leader(partition, result, reply.node_endpoints)
                lot = request.lots.pop(partition, None)
                if lot is not None:
                    self._complete(request, lot, code, result.error_message)
        self._complete_unanswered(request)

    def _complete(self, request: _Request, lot: Lot, code: ErrorCode, message: str | None) -> None:
        self._ledger.complete(
            lot,
            code,
            message,
            lock_deadline_ms=request.sent_at_ms + self.lock_ms,
            retry_at_ms=None
            if request.is_repeated
            else self._now_ms() + self._reading.settings.retry_backoff_ms,
        )

    def _complete_unanswered(self, request: _Request) -> None:
        """An acknowledgement that the response does not mention has failed."""
        for lot in request.lots.values():
            self._complete(request, lot, ErrorCode.unknown_server_error, "The broker did not answer.")

    def _take_records(self, partition: TopicIdPartition, result: ShareFetchPartitionResult) -> None:
        reading = self._reading
        topic = reading.cluster.view.topic_name(partition.topic_id)
        assert topic is not None, "fetched from a topic without a name"
        delivery = Delivery(topic, partition, self._now_ms(), self.lock_ms)
        read = reading.reader.read(result, delivery, self._holder)
        self._ledger.acquire(read.records)
        self._ledger.acknowledge_unheld(partition, read.gaps, AcknowledgeType.GAP)
        self._ledger.acknowledge_unheld(partition, read.unreadable, reading.reader.verdict)
        if reading.reader.verdict is AcknowledgeType.RELEASE:
            for record in read.refused:
                self._ledger.take_back_behind(record)
        reading.queue.add(read.records)

    def _take_error(
        self,
        partition: TopicIdPartition,
        result: ShareFetchPartitionResult,
        endpoints: Sequence[NodeEndpoint],
    ) -> None:
        code = temporary_code(result.error_code, result.error_message)
        log.debug("A fetch of %s failed: %s %s", partition, code.name, result.error_message or "")
        if code in _LEADER_CHANGED:
            self._note_leader(partition, result, endpoints)
        if code in _METADATA_IS_STALE:
            self._reading.on_stale_metadata()

    def _note_leader(
        self,
        partition: TopicIdPartition,
        result: ShareFetchPartitionResult | ShareAcknowledgePartitionResult,
        endpoints: Sequence[NodeEndpoint],
    ) -> None:
        if result.leader_id == _NO_LEADER or not endpoints:
            self._reading.on_stale_metadata()
            return
        leader = Leader(result.leader_id, result.leader_epoch)
        if self._reading.cluster.view.note_leader(partition, leader, endpoints):
            self._reading.on_leader_changed()


def _batches(lots: Sequence[Lot]) -> Batches:
    return {lot.partition: ack_batches(lot.acknowledgements) for lot in lots}
