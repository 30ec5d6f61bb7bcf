"""The driver's part of a micro-batch that is written in transactions: decide, write the decision, end them.

The tasks have left their transactions open. `commit` checks that they still are, writes the decision
(`decision`), and commits each of them. From the decision on the batch counts. If the driver dies or a commit
fails, the driver that gets the batch again commits the rest; its tasks find the decision and write nothing.
`abort` aborts transactions that were not decided.

One driver decides at a time: each initializes the driver's transactional id before it reads the last
decision, which fences a driver that read it earlier and has not decided yet. Tasks of another run of the
query write under other ids, so they never end a transaction that a driver has decided.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from barnabas.client.errors import BrokerError, ConsumerError
from barnabas.client.group.offsets import GroupMetadata, fetch_group_offsets
from barnabas.client.produce.transactions import COMMITTED, ONGOING, Transactions, Writer
from barnabas.client.topic_partition import TopicPartition
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.topic_sink.decision import Decision, Names, decode_decision, encode_decision

log = logging.getLogger(__name__)

DECISION_TIMEOUT_MS: Final = 60_000
"""The timeout of the decision's own transaction, which takes milliseconds."""
ENDS_MAX: Final = 16
"""Transactions that are ended at the same time."""

_tidied: set[tuple[Names, str]] = set()
"""The runs of queries for which this process has looked for transactions that an earlier run left open."""


async def read_decision(transactions: Transactions, names: Names) -> Decision | None:
    """The last decision, after it is settled. Raises `PipelineError` if a sink did not write it."""
    offsets = await fetch_group_offsets(transactions.coordinators, GroupMetadata(names.group))
    return decode_decision(offsets, names)


def is_decided(decision: Decision | None, batch_id: int) -> bool:
    """Whether a batch was decided, so that its earlier records are to be committed.

    Raises `PipelineError` if a later one was decided: the checkpoint is older than the topic's records.
    """
    if decision is not None and decision.batch_id > batch_id:
        raise PipelineError(
            f"Batch {decision.batch_id} of this query was written already, and now batch {batch_id} is to be "
            "written: the checkpoint is older. Give the sink another transactionalIdPrefix to write again."
        )
    return decision is not None and decision.covers(batch_id)


class Committing:
    """One micro-batch at the driver."""

    def __init__(self, transactions: Transactions, names: Names, batch_id: int, run: str = "") -> None:
        """`run` identifies this run of the query."""
        self._transactions = transactions
        self._names = names
        self._batch_id = batch_id
        self._run = run

    async def commit(self, writers: Sequence[Writer], topic: str | None) -> None:
        """Commits the tasks' transactions; without any, those of the earlier decision about this batch.

        `topic` is one of the written topics: the group's offsets are committed for it. Raises `PipelineError`
        if a decided transaction is lost, and `ConsumerError`.
        """
        driver = await self._transactions.begin(self._names.driver, DECISION_TIMEOUT_MS)
        decision = await read_decision(self._transactions, self._names)
        if is_decided(decision, self._batch_id):
            await self.abort_all(
                [writer for writer in writers if decision and writer not in decision.writers]
            )
        elif topic is None:
            raise PipelineError(f"The decision about batch {self._batch_id} is gone: {self._names.group}.")
        else:
            await self._check_open(writers)
            number = 0 if decision is None else decision.number + 1
            decision = Decision(number, self._batch_id, topic, tuple(writers))
            await self._decide(driver, decision)
        assert decision is not None, "decided, before or now"
        await self._end(decision)
        await self._tidy(writers)

    async def abort(self, writers: Sequence[Writer]) -> None:
        """Aborts the tasks' transactions, unless they were decided: then they will be committed."""
        decision = await read_decision(self._transactions, self._names)
        if not is_decided(decision, self._batch_id):
            await self.abort_all(writers)

    async def abort_all(self, writers: Sequence[Writer]) -> None:
        """Aborts transactions that are not needed. If that fails, the broker's timeout aborts them."""
        for writer in writers:
            try:
                await self._transactions.end(writer, commit=False)
            except ConsumerError as error:
                log.warning("%s was not aborted: %s", writer.transactional_id, error)

    async def commit_undecided(self, writers: Sequence[Writer]) -> None:
        """Commits without a decision, for a write that is never repeated. Raises `PipelineError`."""
        await self._check_open(writers)
        lost = await self._commit_all(writers)
        if lost:
            raise PipelineError(f"{_names(lost)} could not be committed; {len(writers) - len(lost)} were.")

    async def _check_open(self, writers: Sequence[Writer]) -> None:
        for writer in writers:
            if not await self._has_state(writer, frozenset({ONGOING})):
                raise PipelineError(
                    f"The transaction {writer.transactional_id} was ended before it could be committed, "
                    "perhaps because it took longer than transactionTimeoutMs. Nothing of the batch counts."
                )

    async def _decide(self, driver: Writer, decision: Decision) -> None:
        offsets = encode_decision(decision, self._names)
        await self._transactions.commit_offsets(
            driver,
            GroupMetadata(self._names.group),
            {TopicPartition(decision.topic, index): committed for index, committed in offsets.items()},
        )
        await self._transactions.end(driver, commit=True)

    async def _end(self, decision: Decision) -> None:
        lost = await self._commit_all(decision.writers)
        if not lost:
            return
        if len(lost) < len(decision.writers):
            raise PipelineError(
                f"Batch {decision.batch_id} was decided, and a part of it is lost: {_names(lost)} ended "
                "before the driver came back to commit them; the others are committed. Write the missing "
                "records by hand, and go on with another transactionalIdPrefix."
            )
        driver = await self._transactions.begin(self._names.driver, DECISION_TIMEOUT_MS)
        withdrawn = decision._replace(number=decision.number + 1, writers=(), is_withdrawn=True)
        await self._decide(driver, withdrawn)
        raise PipelineError(
            f"All transactions of batch {decision.batch_id} ended before the driver came back to commit "
            "them. Nothing of it counts; started again, the query writes it again."
        )

    async def _commit_all(self, writers: Sequence[Writer]) -> list[Writer]:
        """Commits each; returns those that were ended in another way."""
        lost: list[Writer] = []
        for start in range(0, len(writers), ENDS_MAX):
            some = writers[start : start + ENDS_MAX]
            committed = await asyncio.gather(*map(self._commit_one, some))
            lost += [writer for writer, is_committed in zip(some, committed, strict=True) if not is_committed]
        return lost

    async def _commit_one(self, writer: Writer) -> bool:
        try:
            await self._transactions.end(writer, commit=True)
        except BrokerError as error:
            if await self._transactions.describe(_id(writer)) is None:
                raise PipelineError(
                    f"The brokers have forgotten the transaction {_id(writer)} of batch {self._batch_id}, "
                    "and whether it was committed is unknown. Check the topic, and go on with another "
                    "transactionalIdPrefix."
                ) from error
            return await self._has_state(writer, COMMITTED)
        return True

    async def _has_state(self, writer: Writer, states: frozenset[str]) -> bool:
        found = await self._transactions.describe(_id(writer))
        if found is None or found.state not in states:
            return False
        return (found.producer_id, found.producer_epoch) == (writer.producer_id, writer.producer_epoch)

    async def _tidy(self, writers: Sequence[Writer]) -> None:
        """Aborts transactions that failed attempts left open: readers of committed records wait for them."""
        is_retried = not all(str(writer.transactional_id).endswith(".0") for writer in writers)
        if (self._names, self._run) in _tidied and not is_retried:
            return
        try:
            for stray in await self._transactions.open_ids(self._names.tasks):
                await self._transactions.begin(stray, DECISION_TIMEOUT_MS)
        except ConsumerError as error:
            log.warning("Transactions that were left open are not aborted yet: %s", error)
            return
        _tidied.add((self._names, self._run))


def _id(writer: Writer) -> str:
    assert writer.transactional_id is not None, "a writer in a transaction"
    return writer.transactional_id


def _names(writers: Sequence[Writer]) -> str:
    return ", ".join(str(writer.transactional_id) for writer in writers)
