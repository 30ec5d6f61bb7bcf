"""Requests about one partition that its leader answers, repeated while it moves or loads."""

from __future__ import annotations

from typing import Protocol, TypeVar

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.leaders import Leaders
from barnabas.client.cluster.topics import TOPIC_GONE_MS
from barnabas.client.errors import BrokerUnavailableError, TopicGoneError, broker_error
from barnabas.client.network.connection import Connection
from barnabas.client.waiting.patience import Patience, Retries
from barnabas.protocol.client.api import ClientApi
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition


class _Answer(Protocol):
    """A response with one error."""

    @property
    def error_code(self) -> ErrorCode: ...

    @property
    def error_message(self) -> str | None: ...


_Request = TypeVar("_Request")
_Response = TypeVar("_Response", bound=_Answer)


class LeaderRequests:
    """Connections to leaders. Call `close` once; the cluster stays open.

    The topics of the partitions must have been found before, with `Topics.find`.
    """

    def __init__(self, cluster: Cluster, retries: Retries) -> None:
        self._leaders = Leaders(cluster)
        self._retries = retries

    def close(self) -> None:
        self._leaders.close()

    async def ask(
        self, partition: TopicIdPartition, api: ClientApi[_Request, _Response], request: _Request
    ) -> _Response:
        """The leader's response without an error.

        Raises `BrokerError` for a lasting error, `TopicGoneError`, and `BrokerUnavailableError` for a
        temporary error that lasts longer than `Retries.give_up_ms`.
        """
        patience = self._retries.patience()
        while True:
            connection = await self._connected(partition, patience)
            try:
                response = await connection.ask(api, request)
                code = response.error_code
                if code is ErrorCode.none:
                    return response
                if not code.retriable:
                    raise broker_error(code, response.error_message)
                reason = response.error_message or code.name
                raise BrokerUnavailableError(f"The leader cannot answer at the moment: {reason}")
            except BrokerUnavailableError as error:
                self._leaders.mark_stale(partition)
                await patience.pause(error)

    async def connection(self, partition: TopicIdPartition) -> Connection:
        """The connection to the leader, for a request that must not be repeated. Raises as `ask`."""
        return await self._connected(partition, self._retries.patience())

    async def _connected(self, partition: TopicIdPartition, patience: Patience) -> Connection:
        while True:
            try:
                return await self._leaders.connection(partition)
            except TopicGoneError as error:
                await patience.pause(error, give_up_ms=TOPIC_GONE_MS)
            except BrokerUnavailableError as error:
                await patience.pause(error)
