"""The error of a fenced producer, in the versions of the transaction APIs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.network.handler import RequestContext


def fenced_code(code: ErrorCode, context: RequestContext, *, known_from: int) -> ErrorCode:
    """The code for the client: INVALID_PRODUCER_EPOCH in versions without PRODUCER_FENCED."""
    if code is ErrorCode.producer_fenced and context.api_version < known_from:
        return ErrorCode.invalid_producer_epoch
    return code
