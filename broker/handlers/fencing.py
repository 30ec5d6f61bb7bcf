"""What handlers of transactions share: how a producer is told that another one has taken its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.network.handler import RequestContext


def fenced_code(code: ErrorCode, context: RequestContext, *, known_from: int) -> ErrorCode:
    """The code as the client knows it: before that version there was no PRODUCER_FENCED."""
    if code is ErrorCode.producer_fenced and context.api_version < known_from:
        return ErrorCode.invalid_producer_epoch
    return code
