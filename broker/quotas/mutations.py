"""Changes of metadata, charged to the client that asks for them (KIP-599).

Newer requests are refused, topic by topic, once the client has used up its quota; older ones, whose clients
don't know of that, are carried out, and the client waits.
"""

from __future__ import annotations

from barnabas.broker.quotas.client_quotas import ClientQuotas
from barnabas.protocol.errors import ApiError, ErrorCode


class MutationCharge:
    """One request's: called with the number of partitions that each topic gets, or loses."""

    __slots__ = ("_client_id", "_quotas", "_strict", "throttle_ms")

    def __init__(self, quotas: ClientQuotas, client_id: str | None, *, strict: bool) -> None:
        self.throttle_ms = 0
        """For how long the client is to wait, for the response to say."""
        self._quotas = quotas
        self._client_id = client_id or ""
        self._strict = strict

    def __call__(self, partition_count: int) -> None:
        """Raises `ApiError` for what the quota has no room for."""
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
