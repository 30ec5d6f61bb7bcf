"""A share fetch that waits for records (KIP-932, "Fetching"): the share groups' entry in the purgatory.

It completes when records of `min_bytes` can be acquired, when a partition has an error, or at its deadline
with the available records. It acquires records only at the moment of the answer, so a waiting member holds
none. The answer also has the results of the acknowledgements in the request.

A look decides whether to answer. If not, a look follows when the cause of the wait may have ended:

    a log is being opened                          when it is open (`FetchSource`, `begin_when`)
    the group's state is being loaded or reset     `SharePartitions.wake_fetches`
    the start offset is being recorded             `SharePartitionLeader._announce`
    no new records, or too few                     `Broker._log_moved`
    locked records, a full window, the order       `SharePartitionLeader`, when records are released or the
                                                   start offset moves: `_settle` once an acknowledgement is
                                                   recorded, `_announce` after all other changes
    records that are not due yet                   `SharePartitionLeader.expire`
    a log that went offline                        `Broker._log_replaced`
    acknowledgements that are being written        their `Completion`, even after the deadline
    no memory for responses, a `LateError`         the next of these events; at the latest the deadline

A further request on the same connection (`hurry`), a fenced leader, a deleted topic and disabled share groups
end the wait as well. A changed setting counts from the next look on. `partition.inspection` computes the
causes that `barnabas inspect` shows as WAITS FOR.

A look that does not fit in a turn (`ShareFetch.fits_in_turn`) is split into several. Then each partition is
planned again in the turn in which its records are acquired.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from barnabas.runtime.completion import Completion
from barnabas.runtime.reserving_operation import ReservingOperation
from barnabas.runtime.response_budget import EncodedBody, ResponseBudget
from barnabas.runtime.turns import Turns, some_at_a_time
from barnabas.share.fetch.fetch_source import FetchSource
from barnabas.share.fetch.share_fetch import Look, ShareFetch
from barnabas.share.sessions.acknowledgements import Results

Encode = Callable[[Look], EncodedBody | Awaitable[EncodedBody]]
"""Builds the response from the results of a look."""

_STEPS_PER_PARTITION: Final = 3
"""The part of a turn that a look at one partition costs."""
_STEPS_PER_HANDOUT: Final = 40
"""The part of a turn that one partition costs if records are acquired."""


class ShareFetchOperation(ReservingOperation):
    """One request's wait, and the future of its response.

    Its states, the events that end them, and the effects:

        idle        try_complete                    a look begins; most looks end in the same turn
        looking     the look ends                   answered, or idle again if there is not enough
                    try_complete                    woken, because the look may have missed a change
        woken       the look ends                   answered, or another look begins
        answered    acknowledgements are recorded   the answer is encoded, then the operation is done

    It is looking while `_looking` is set, and woken while `_is_woken` is, too. The end of the wait
    (`on_expire`) is a `try_complete` after which a look answers in any case.
    """

    def __init__(
        self,
        source: FetchSource,
        budget: ResponseBudget,
        fetch: ShareFetch,
        acknowledged: Completion[Results],
        encode: Encode,
    ) -> None:
        super().__init__(budget)
        self._source = source
        self._fetch = fetch
        self._group_id = fetch.request.group_id or ""
        self._acknowledged = acknowledged
        self._encode = encode
        self._looking: asyncio.Future[bool] | None = None
        """A look that takes several turns."""
        self._is_woken = False
        """Whether something has changed since that look began."""
        self._encoding: asyncio.Future[EncodedBody] | None = None
        """Kept, since the loop itself doesn't keep its tasks alive."""

    def try_complete(self) -> bool:
        """See `DelayedOperation`."""
        if self._looking is not None:
            self._is_woken = True
            return False
        fetch = self._fetch
        config = self._source.config_of(self._group_id)
        look = fetch.begin_look(config, self._source.now_ms())
        if not self._source.serves_share_groups:
            self._answer(look)
            return True
        if fetch.fits_in_turn:
            found = fetch.look(look)
            if found is not None:
                self._answer(found)
            return found is not None
        self._looking = asyncio.ensure_future(self._look_in_turns(look))
        self._looking.add_done_callback(self._end_of_look)
        return False

    def expire(self, now_ms: int) -> None:
        """See `Expirable`."""
        self._source.counts.expired_fetches.add()
        super().expire(now_ms)

    def on_expire(self) -> None:
        """See `DelayedOperation`."""
        self._fetch.is_wait_over = True
        self.try_complete()

    def _end_of_look(self, looking: asyncio.Future[bool]) -> None:
        """A look in several turns has ended. If it has not answered, it may have missed a change."""
        self._looking = None
        is_over = self.done
        if not is_over and not looking.cancelled():
            is_woken, self._is_woken = self._is_woken, False
            try:
                is_over = looking.result() or (is_woken and self.try_complete())
            except Exception as error:
                # A callback has no caller that could handle the error, and the client must not wait for ever.
                is_over = True
                self.fail(error)
        if is_over and self.purgatory is not None:
            self.purgatory.forget(self)

    async def _look_in_turns(self, look: Look) -> bool:
        """Does the same as `ShareFetch.look`, and answers; returns whether it did."""
        fetch, turns = self._fetch, Turns()
        if fetch.hand_out_again(look):
            self._answer(look)
            return True
        stops_early = fetch.may_stop_early
        await self._plan(look, turns, stops_early=stops_early)
        if self.done or not fetch.has_enough(look):
            return False
        await self._acquire(look, turns)
        if stops_early and not look.handouts:
            look = look.following()
            await self._plan(look, turns, stops_early=False)
            await self._acquire(look, turns)
        if not fetch.is_answer(look):
            return False
        self._answer(look)
        return True

    async def _plan(self, look: Look, turns: Turns, *, stops_early: bool) -> None:
        for some in some_at_a_time(self._fetch.partitions):
            if self._fetch.plan_some(look, some, stops_early=stops_early):
                break
            await turns.took(_STEPS_PER_PARTITION * len(some))

    async def _acquire(self, look: Look, turns: Turns) -> None:
        fetch, read_turns = self._fetch, self._response_budget.read_turns
        bytes_max = min(fetch.max_bytes, self._response_budget.bytes_max())
        for first_planned in look.planned:
            if read_turns.are_over:
                await read_turns.wait(turns)
                bytes_max = min(bytes_max, self._response_budget.bytes_max())
            if not bytes_max or look.demand.records_max <= 0 or self.done:
                break
            # Others have had their turn since it was planned.
            planned = fetch.plan(look, first_planned.partition) if turns.passed else first_planned
            if planned is not None:
                read_bytes = look.read_bytes
                fetch.acquire(look, planned, bytes_max)
                self.reserve(look.read_bytes - read_bytes)
            await turns.took(_STEPS_PER_HANDOUT)

    def answer(self, look: Look) -> None:
        """Answers with the results of a look, which are counted, when the acknowledgements are recorded."""
        self.reserve(look.read_bytes - self._reserved_bytes)
        self._acknowledged.when_done(lambda _: self._set(look))

    def _answer(self, look: Look) -> None:
        self._fetch.count(look)
        self.answer(look)

    def _set(self, look: Look) -> None:
        if self.done:
            return
        try:
            encoded = self._encode(look)
            if isinstance(encoded, EncodedBody):
                self.hand_over(encoded)
            else:
                self._encoding = asyncio.ensure_future(encoded)
                self._encoding.add_done_callback(self._encoded)
        except Exception as error:
            # This is a listener of the acknowledgements: only the answer can tell of a defect.
            self.fail(error)

    def _encoded(self, encoding: asyncio.Future[EncodedBody]) -> None:
        if self.done or encoding.cancelled():
            return
        try:
            self.hand_over(encoding.result())
        except Exception as error:
            self.fail(error)
