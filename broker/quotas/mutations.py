"""Charges changes of metadata to the client that requests them (KIP-599).

Newer versions of a request are refused, topic by topic, once the client has used up its quota. Older
versions, whose clients don't know that error, are executed, and the client waits.
"""

from __future__ import annotations

from barnabas.broker.quotas.client_quotas import ClientQuotas
from barnabas.protocol.errors import ApiError, ErrorCode


class MutationCharge:
    """The charge of one request; called with the number of partitions created or deleted for each topic."""

    __slots__ = ("_client_id", "_quotas", "_strict", "throttle_ms")

    def __init__(self, quotas: ClientQuotas, client_id: str | None, *, strict: bool) -> None:
        self.throttle_ms = 0
        """The throttle time for the response."""
        self._quotas = quotas
        self._client_id = client_id or ""
        self._strict = strict

    def __call__(self, partition_count: int) -> None:
        """Raises `ApiError` THROTTLING_QUOTA_EXCEEDED if the quota is used up."""
        if not self._quotas.active:
            return
        if self._strict:
            self._note_wait()
            if self.throttle_ms:
                raise ApiError(ErrorCode.throttling_quota_exceeded)
        self._quotas.mutated(self._client_id, partition_count)
        if not self._strict:
            self._note_wait()

    def _note_wait(self) -> None:
        wait_ms = self._quotas.mutation_throttle_ms(self._client_id)
        self.throttle_ms = max(self.throttle_ms, wait_ms)
