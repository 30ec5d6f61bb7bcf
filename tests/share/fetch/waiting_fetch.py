"""A share fetch that waits, for the tests that look at it without a handler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from barnabas.broker.node.broker import Broker
from barnabas.protocol.decode.share_fetch import ShareFetchBody
from barnabas.runtime.completion import Completion
from barnabas.runtime.response_budget import ResponseBudget
from barnabas.share.fetch.share_fetch import ShareFetch
from barnabas.share.fetch.share_fetch_operation import Encode, ShareFetchOperation
from barnabas.share.partition.limits import AcquireMode
from barnabas.share.sessions.acknowledgements import Results
from barnabas.share.sessions.session import SessionPartition, ShareSession


def waiting_fetch(
    broker: Broker,
    session: ShareSession,
    encode: Encode,
    budget: ResponseBudget,
    *,
    partitions: Sequence[SessionPartition] | None = None,
    acknowledged: Completion[Results] | None = None,
    **changes: Any,
) -> ShareFetchOperation:
    """The fetch of all partitions of the session, or of these. `changes` are fields of the request."""
    mode = AcquireMode.BATCH_OPTIMIZED.value
    request = ShareFetchBody(*session.key, 1, 1_000, 1, 1 << 20, 500, 500, mode, False, [], [])
    request = request._replace(**changes)
    fetched = list(session) if partitions is None else partitions
    began_ms = broker.clock.monotonic_ms()
    fetch = ShareFetch(
        broker.fetch_source, budget, session, request, fetched, {}, request.max_bytes, began_ms
    )
    done = Completion.of(Results()) if acknowledged is None else acknowledged
    return ShareFetchOperation(broker.fetch_source, budget, fetch, done, encode)
