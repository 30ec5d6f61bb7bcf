"""Keeps one member in its group: sends the requests of `Membership` at the times that it names (KIP-932).

Heartbeats have a connection of their own, because a fetch that waits for records would delay them. The
last heartbeat, which leaves the group, goes over the same connection, so no outstanding join can arrive after
it. The callback for assignments must not block, because it runs between two heartbeats.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.errors import BrokerError, BrokerUnavailableError, SecurityError
from barnabas.client.group.member import Member, Next, Step
from barnabas.client.network.address import Address
from barnabas.client.network.connection import Connection
from barnabas.client.waiting.backoff import Backoff
from barnabas.client.waiting.signal import Signal
from barnabas.protocol.client.api import ClientApi
from barnabas.protocol.counted import counted

log = logging.getLogger(__name__)

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")


class Heartbeats(Generic[_Request, _Response]):
    """A member's heartbeats: `run` them in a task; after cancelling it, `leave`, then `drop_connection`."""

    def __init__(
        self,
        cluster: Cluster,
        api: ClientApi[_Request, _Response],
        membership: Member[_Request, _Response],
        backoff: Backoff,
        on_assignment: Callable[[], None],
        on_answer: Callable[[], None] | None = None,
    ) -> None:
        """`on_assignment` is called when `membership.assignment` has changed.

        `on_answer` is called after each answer.
        """
        self.count = 0
        """The heartbeats that were answered."""
        self._cluster = cluster
        self._api = api
        self._membership = membership
        self._backoff = backoff
        self._on_assignment = on_assignment
        self._on_answer = on_answer
        self._coordinator: Address | None = None
        self._connection: Connection | None = None
        self._hurry = Signal()
        self._is_in_trouble = False

    async def run(self) -> None:
        """Send heartbeats until cancelled. Raises `BrokerError` for a lasting error."""
        while True:
            step = await self._beat()
            if step.move is Next.STOP:
                raise self._membership.error or AssertionError("left the group while heartbeats ran")
            await self._pause(step)

    def hurry(self) -> None:
        """There is news of the member: send its next request now."""
        self._hurry.set()

    async def leave(self) -> None:
        """Try to tell the coordinator that the member leaves; it removes a silent member later by itself."""
        request = self._membership.leave()
        if request is None:
            return
        try:
            connection = await self._connect()
            await connection.ask(self._api, request)
        except (BrokerUnavailableError, BrokerError, SecurityError) as error:
            log.debug("Leaving the group %s failed: %s", self._membership.group_id, error)

    def drop_connection(self) -> None:
        """Close the connection; the next heartbeat, if any, looks up the coordinator again."""
        self._coordinator = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def _beat(self) -> Step:
        membership = self._membership
        before = membership.assignment
        try:
            connection = await self._connect()
            self._hurry.clear()
            request = membership.request()
            if request is None:
                return Step(Next.WAIT, None)
            step = membership.handle(await connection.ask(self._api, request))
        except BrokerUnavailableError as error:
            membership.note_unanswered()
            self._note_failure(error)
            return Step(Next.FIND_COORDINATOR)
        self._is_in_trouble = False
        self.count += 1
        if membership.assignment != before:
            partitions = counted(len(membership.assignment), "partition")
            log.info("The group %s assigns %s", membership.group_id, partitions)
            self._on_assignment()
        if self._on_answer is not None:
            self._on_answer()
        return step

    async def _pause(self, step: Step) -> None:
        if step.move is Next.FIND_COORDINATOR:
            self.drop_connection()
        if step.move in {Next.FIND_COORDINATOR, Next.BACK_OFF}:
            delay_ms: int | None = self._backoff.next_ms()
        else:
            self._backoff.reset()
            delay_ms = step.delay_ms
        await self._hurry.wait(delay_ms)

    async def _connect(self) -> Connection:
        if self._coordinator is None:
            self._coordinator = await self._cluster.find_coordinator(self._membership.group_id)
        if self._connection is None or not self._connection.is_open:
            self._connection = await self._cluster.open(self._coordinator)
        return self._connection

    def _note_failure(self, error: BrokerUnavailableError) -> None:
        """Warns when a member's heartbeats begin to fail; one that joins often waits for its coordinator."""
        is_news = self._membership.is_member and not self._is_in_trouble
        self._is_in_trouble = True
        level = logging.WARNING if is_news else logging.DEBUG
        log.log(level, "A heartbeat of the group %s failed: %s", self._membership.group_id, error)
