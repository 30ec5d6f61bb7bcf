"""One broker that leads partitions of this consumer: when to connect, fetch and acknowledge (KIP-932).

A fetch that is about to be sent carries the acknowledgements. Otherwise they have a request of their own. It
is sent immediately if a caller waits for them, if locks must be renewed, or if no fetch is outstanding; in
any case it is sent after `acknowledge_within_ms`, behind a fetch that waits for records. The broker answers
in order: Barnabas ends such a fetch early, and Apache Kafka delays the answer by up to `max_wait_ms`.

When the connection or the session is lost, every lock is lost, because the broker releases them. The held
records are dropped, and after a pause a new connection opens a new session. Before that it repeats the
requests without an answer, for the results of their acknowledgements, if they are not older than a request's
timeout.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, Generic

from barnabas.client.errors import (
    AcknowledgeError,
    BrokerUnavailableError,
    UnsupportedBrokerError,
)
from barnabas.client.network.connection import Connection
from barnabas.client.record_content import KeyT, ValueT
from barnabas.client.share.acknowledgements import AcknowledgeType, Confirmation, Lot, TransactionPart
from barnabas.client.share.exchange import ShareExchange, ShareReading, UnansweredRequest
from barnabas.client.share.held_record import HeldRecord, RecordState, fate_of
from barnabas.client.share.ledger import Ledger
from barnabas.client.share.record import Outcome
from barnabas.client.share.session_errors import SessionLostError
from barnabas.client.waiting.backoff import Backoff
from barnabas.client.waiting.signal import Signal
from barnabas.protocol.client.consumer_apis import SHARE_ACKNOWLEDGE, SHARE_FETCH
from barnabas.protocol.decode.acknowledging_transaction import AcknowledgingTransaction
from barnabas.protocol.decode.share_acknowledge import RENEWAL_VERSION
from barnabas.protocol.decode.share_fetch import MODE_VERSION
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.extended import RELEASE_DELAY, SHARE_TRANSACTIONS
from barnabas.protocol.identity import TopicIdPartition

log = logging.getLogger(__name__)

LOCK_CHECKS: Final = 6
"""Checks of the locks within the duration of one lock: each is renewed when between a half and a third is
left."""

_MS_PER_SECOND: Final = 1000


class ShareLeader(Generic[KeyT, ValueT]):
    """One broker, and the records held from it. `run` it in a task; `finish` ends that task."""

    def __init__(self, node_id: int, reading: ShareReading[KeyT, ValueT]) -> None:
        settings = reading.settings
        self._node_id = node_id
        self._reading = reading
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._news = Signal()
        self._ledger = Ledger(self._report, self._note_pending)
        self._wanted: frozenset[TopicIdPartition] = frozenset()
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, settings.random)
        self._fetch_backoff = Backoff(
            settings.retry_backoff_ms, settings.retry_backoff_max_ms, settings.random
        )
        self._fetch_not_before_ms = 0
        self._pending_since_ms: int | None = None
        self._lock_check_ms: int | None = None
        """The time of the next check of the locks; None while no record is held."""
        self._is_urgent = False
        self._is_in_trouble = False
        self._is_finishing = False
        self._unanswered: list[UnansweredRequest] = []
        self._repeat_until_ms = 0
        """The requests to repeat over the next connection, and the end of the time for that."""
        self._renews = False
        """Whether the broker supports renewal of locks."""
        self._delays_releases = False
        """Whether the broker supports delays of released records."""
        self._transacts = False
        """Whether the broker supports acknowledgements in transactions."""

    # The consumer calls these.

    def read(self, wanted: frozenset[TopicIdPartition]) -> None:
        """Fetch from exactly these partitions from now on."""
        self._wanted = wanted
        self._news.set()

    def lose(self, partition: TopicIdPartition) -> None:
        """Another broker leads this partition now, and does not know the locks of this session."""
        self._ledger.lose(partition, ErrorCode.not_leader_or_follower)

    def look_again(self) -> None:
        """The queue may have room for records."""
        self._news.set()

    async def flush(self) -> None:
        """Return once all acknowledgements made so far are answered, with or without errors."""
        answered: asyncio.Future[None] = self._loop.create_future()

        def pass_barrier() -> None:
            if not answered.done():
                answered.set_result(None)

        self._ledger.barrier(pass_barrier)
        self._is_urgent = True
        self._news.set()
        await answered

    def finish(self) -> None:
        """Release the held records, tell the broker, and end the session."""
        self._is_finishing = True
        self._ledger.release_all(self._now_ms())
        self._news.set()

    @property
    def held_count(self) -> int:
        """The records that are locked for this consumer, as far as it knows."""
        return self._ledger.held_count

    # Records call these (`Holder`).

    @property
    def is_implicit(self) -> bool:
        return self._settings.is_implicit

    def rejects(self, error: BaseException) -> bool:
        return isinstance(error, self._settings.reject_on)

    def settle(
        self, record: HeldRecord, acknowledge_type: AcknowledgeType, delay_ms: int | None = None
    ) -> None:
        self._reading.guard.check()
        if delay_ms and not self._delays_releases:
            raise UnsupportedBrokerError(
                ErrorCode.unsupported_version, f"The broker does not have the feature {RELEASE_DELAY}."
            )
        if record.state is RecordState.HELD:
            self._ledger.settle(record, acknowledge_type, delay_ms)
        else:
            self._report(_too_late(record))

    async def settle_in_transaction(
        self,
        records: Sequence[HeldRecord],
        acknowledge_type: AcknowledgeType,
        transaction: AcknowledgingTransaction,
    ) -> None:
        self._reading.guard.check()
        if not self._transacts:
            raise UnsupportedBrokerError(
                ErrorCode.unsupported_version,
                f"The broker does not have the feature {SHARE_TRANSACTIONS}, an extension by Barnabas.",
            )
        lost = [record for record in records if record.state is not RecordState.HELD]
        if lost:
            raise self._error(_too_late(lost[0]))
        part = TransactionPart(transaction)
        for record in records:
            self._ledger.settle(record, acknowledge_type, part=part)
        await self.flush()
        if part.refusal is not None:
            raise self._error(part.refusal)

    async def renew(self, record: HeldRecord) -> None:
        if not self._renews:
            raise UnsupportedBrokerError(ErrorCode.unsupported_version, "The broker cannot renew locks.")
        if record.state is not RecordState.HELD:
            raise self._error(_too_late(record))
        renewal = self._ledger.renew(record)
        await self.flush()
        assert renewal.code is not None, record
        if renewal.code is not ErrorCode.none:
            partition, offsets = record.topic_id_partition, (record.offset,)
            raise self._error(Confirmation(partition, offsets, renewal.code, renewal.message))

    # The task.

    async def run(self) -> None:
        """Read until `finish` is called. Raises `BrokerError` for a lasting error."""
        try:
            await self._read()
        finally:
            self._repeat_nothing()

    async def _read(self) -> None:
        while not self._is_finishing:
            self._news.clear()
            if not self._wanted:
                await self._news.wait(None)
                continue
            try:
                await self._read_over_one_connection()
            except (BrokerUnavailableError, SessionLostError) as error:
                self._give_up(error)
                await self._pause(self._backoff.next_ms())
                if self._now_ms() >= self._repeat_until_ms:
                    self._repeat_nothing()

    async def _read_over_one_connection(self) -> None:
        connection = await self._connect()
        exchange = ShareExchange(connection, self._reading, self._ledger, self, self._news.set)
        repeated, self._unanswered = self._unanswered, []
        exchange.repeat(repeated)
        try:
            while not self._is_finishing:
                await self._news.wait(self._pass(exchange))
                self._news.clear()
                if exchange.collect():
                    self._note_fetched(exchange)
            await self._end_session(exchange)
        except BrokerUnavailableError:
            self._unanswered = exchange.unanswered()
            self._repeat_until_ms = self._now_ms() + self._settings.request_timeout_ms
            raise
        finally:
            exchange.close()
            self._ledger.lose_all(ErrorCode.network_exception, repeated=self._lots_to_repeat())
            self._reading.queue.pass_turn(self._node_id)

    def _lots_to_repeat(self) -> list[Lot]:
        return [lot for request in self._unanswered for lot in request.lots]

    def _repeat_nothing(self) -> None:
        """No connection came in time: the acknowledgements have failed."""
        self._ledger.give_up(self._lots_to_repeat(), ErrorCode.network_exception)
        self._unanswered = []

    async def _pause(self, pause_ms: int) -> None:
        """Wait before the next try; `finish` ends the pause."""
        until_ms = self._now_ms() + pause_ms
        while not self._is_finishing and self._now_ms() < until_ms:
            self._news.clear()
            await self._news.wait(until_ms - self._now_ms())

    async def _connect(self) -> Connection:
        address = self._reading.cluster.view.brokers.get(self._node_id)
        if address is None:
            raise BrokerUnavailableError(f"Node {self._node_id} is not part of the cluster now.")
        connection = await self._reading.cluster.open(address)
        try:
            fetch_version = connection.version(SHARE_FETCH)
            self._delays_releases = connection.supports(RELEASE_DELAY)
            self._renews = connection.version(SHARE_ACKNOWLEDGE) >= RENEWAL_VERSION
            self._transacts = connection.supports(SHARE_TRANSACTIONS)
            if self._settings.limits_records and fetch_version < MODE_VERSION:
                raise UnsupportedBrokerError(
                    ErrorCode.unsupported_version, "The broker does not support record_limit."
                )
        except UnsupportedBrokerError:
            connection.close()
            raise
        return connection

    def _pass(self, exchange: ShareExchange[KeyT, ValueT]) -> int | None:
        """Send the requests that are due. Returns the milliseconds until the next is due; None for never."""
        now_ms = self._now_ms()
        self._check_locks(exchange, now_ms)
        fetch_count = self._fetch_count(exchange, now_ms)
        if self._acknowledgement_is_due(exchange, now_ms, will_fetch=fetch_count > 0):
            self._acknowledge(exchange, now_ms)
        if fetch_count > 0:
            rides = exchange.is_established and not exchange.acknowledges
            lots = self._ledger.take(now_ms, with_renewals=False) if rides else []
            exchange.fetch(self._wanted, fetch_count, lots, max_wait_ms=self._max_wait_ms(exchange))
        if not self._ledger.has_pending:
            self._pending_since_ms = None
            self._is_urgent = False
        return self._next_due_ms(now_ms)

    def _max_wait_ms(self, exchange: ShareExchange[KeyT, ValueT]) -> int:
        """The wait of the next fetch.

        It is short while records are held, because renewals may be answered only after the fetch.
        """
        max_wait_ms = self._settings.max_wait_ms
        return max_wait_ms if self._ledger.is_empty else min(max_wait_ms, exchange.lock_ms // LOCK_CHECKS)

    def _fetch_count(self, exchange: ShareExchange[KeyT, ValueT], now_ms: int) -> int:
        """How many records to ask for now; 0 for no fetch."""
        if exchange.fetches:
            return 0
        if not self._wanted or now_ms < self._fetch_not_before_ms:
            self._reading.queue.pass_turn(self._node_id)
            return 0
        return self._reading.queue.wanted_count(self._node_id)

    def _acknowledgement_is_due(
        self, exchange: ShareExchange[KeyT, ValueT], now_ms: int, *, will_fetch: bool
    ) -> bool:
        if not exchange.is_established or exchange.acknowledges:
            return False
        if not self._ledger.has_pending:
            # An empty request makes the broker answer the waiting fetch, which carries acknowledgements.
            return self._is_urgent and exchange.acknowledgements_ride
        retry_ms = self._ledger.next_retry_ms()
        if retry_ms is not None and retry_ms > now_ms:
            return False
        if self._is_urgent or self._ledger.has_renewals:
            return True
        if will_fetch:
            return False
        has_waited = now_ms >= (self._pending_since_ms or 0) + self._settings.acknowledge_within_ms
        return has_waited or not exchange.fetches

    def _acknowledge(self, exchange: ShareExchange[KeyT, ValueT], now_ms: int) -> None:
        """Parts of transactions come first: a caller waits for each."""
        part = self._ledger.next_part(now_ms)
        lots = self._ledger.take(now_ms, with_renewals=part is None, part=part)
        exchange.acknowledge(lots, transaction=None if part is None else part.transaction)

    def _next_due_ms(self, now_ms: int) -> int | None:
        due = [] if self._lock_check_ms is None else [self._lock_check_ms]
        if self._fetch_not_before_ms > now_ms:
            due.append(self._fetch_not_before_ms)
        if self._pending_since_ms is not None:
            sent_by_ms = self._pending_since_ms + self._settings.acknowledge_within_ms
            due.append(max(sent_by_ms, self._ledger.next_retry_ms() or 0))
        later = [due_ms for due_ms in due if due_ms > now_ms]
        return min(later) - now_ms if later else None

    def _check_locks(self, exchange: ShareExchange[KeyT, ValueT], now_ms: int) -> None:
        if self._ledger.is_empty:
            self._lock_check_ms = None
            return
        if self._lock_check_ms is not None and now_ms >= self._lock_check_ms:
            self._ledger.expire(now_ms)
            if self._settings.renew_locks and self._renews:
                self._ledger.renew_due(now_ms, exchange.lock_ms, self._settings.hold_ms_max)
            self._lock_check_ms = None
        # The lock duration may have become shorter since the next check was scheduled.
        next_ms = now_ms + max(exchange.lock_ms // LOCK_CHECKS, 1)
        if self._lock_check_ms is None or next_ms < self._lock_check_ms:
            self._lock_check_ms = next_ms

    def _note_fetched(self, exchange: ShareExchange[KeyT, ValueT]) -> None:
        self._backoff.reset()
        if self._is_in_trouble:
            log.info("Reading from node %d again", self._node_id)
            self._is_in_trouble = False
        if exchange.fetch_failed:
            self._fetch_not_before_ms = self._now_ms() + self._fetch_backoff.next_ms()
        else:
            self._fetch_backoff.reset()
        self._reading.queue.pass_turn(self._node_id)

    def _note_pending(self) -> None:
        if self._pending_since_ms is None:
            self._pending_since_ms = self._now_ms()
        self._news.set()

    async def _end_session(self, exchange: ShareExchange[KeyT, ValueT]) -> None:
        """Send the remaining acknowledgements, one lot of each partition at a time, and end the session.

        Lots that wait for a retry are left out: the broker releases their records.
        """
        is_final = not exchange.is_established
        while not is_final:
            part = self._ledger.next_part(self._now_ms())
            lots = self._ledger.take(self._now_ms(), with_renewals=part is None, part=part)
            is_final = not lots or not self._ledger.has_pending
            transaction = None if part is None else part.transaction
            exchange.acknowledge(lots, transaction=transaction, is_final=is_final)
            while exchange.acknowledges:
                await self._news.wait(None)
                self._news.clear()
                exchange.collect()

    def _give_up(self, error: Exception) -> None:
        level = logging.DEBUG if self._is_in_trouble else logging.WARNING
        log.log(level, "Reading from node %d has stopped until the next try: %s", self._node_id, error)
        self._is_in_trouble = True
        self._reading.on_stale_metadata()

    def _now_ms(self) -> int:
        return int(self._loop.time() * _MS_PER_SECOND)

    def _report(self, confirmation: Confirmation) -> None:
        self._reading.on_outcome(self._outcome(confirmation))

    def _outcome(self, confirmation: Confirmation) -> Outcome:
        partition, offsets, code, _ = confirmation
        error = None if code is ErrorCode.none else self._error(confirmation)
        return Outcome(self._topic(partition), partition.partition, offsets, error)

    def _error(self, confirmation: Confirmation) -> AcknowledgeError:
        partition, offsets, code, message = confirmation
        return AcknowledgeError(code, self._topic(partition), partition.partition, offsets, message)

    def _topic(self, partition: TopicIdPartition) -> str:
        return self._reading.cluster.view.topic_name(partition.topic_id) or str(partition.topic_id)


def _too_late(record: HeldRecord) -> Confirmation:
    return Confirmation(
        record.topic_id_partition, [record.offset], ErrorCode.invalid_record_state, fate_of(record)
    )
