"""Functions for replies of handlers and coordinators that are ready at once or later, and for very large
ones.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeGuard, TypeVar

from barnabas.broker.network.dispatch import Reply, RequestContext, Response
from barnabas.protocol.codec import encode_response
from barnabas.protocol.errors import ApiError
from barnabas.protocol.varint import Buffer
from barnabas.runtime.completion import Completion
from barnabas.runtime.long_work import LongWork
from barnabas.runtime.response_budget import EncodedBody
from barnabas.runtime.turns import Turns

_Value = TypeVar("_Value")
_Response = TypeVar("_Response")


def is_pending(reply: Reply) -> TypeGuard[Awaitable[Response]]:
    """Whether a handler's reply must be awaited."""
    return isinstance(reply, Awaitable)


async def settle(reply: Reply) -> Response:
    """The response of a reply, which may be ready or must be awaited."""
    return await reply if is_pending(reply) else reply


async def encoded_at_length(
    work: LongWork, turns: Turns, context: RequestContext, response: Response
) -> Response:
    """A response that took several turns is encoded in a thread; any other is returned unchanged."""
    if not turns.passed:
        return response
    body = await work.run(encode_response, context.api_key, context.api_version, response)
    return EncodedBody(list[Buffer](body))


def respond_when_done(
    reply: Completion[_Value],
    respond: Callable[[_Value], _Response],
    refuse: Callable[[ApiError], _Response],
) -> _Response | Awaitable[_Response]:
    """The response made of the reply's value, or of its error: at once if the reply is done."""
    if reply.done:
        return _response(reply, respond, refuse)
    return _await_response(reply, respond, refuse)


def _response(
    reply: Completion[_Value],
    respond: Callable[[_Value], _Response],
    refuse: Callable[[ApiError], _Response],
) -> _Response:
    try:
        value = reply.result()
    except ApiError as error:
        return refuse(error)
    return respond(value)


async def _await_response(
    reply: Completion[_Value],
    respond: Callable[[_Value], _Response],
    refuse: Callable[[ApiError], _Response],
) -> _Response:
    try:
        value = await reply
    except ApiError as error:
        return refuse(error)
    return respond(value)
