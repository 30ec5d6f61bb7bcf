"""Functions for replies of handlers and coordinators that are ready at once or later, and for very large
ones.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from kio.static.protocol import Entity

from barnabas.broker.network.handler import Reply, RequestContext, Response
from barnabas.protocol.codec import encode_response
from barnabas.protocol.errors import ApiError
from barnabas.protocol.varint import Buffer
from barnabas.runtime.completion import Completion
from barnabas.runtime.long_work import LongWork
from barnabas.runtime.response_budget import EncodedBody
from barnabas.runtime.turns import Turns

_Value = TypeVar("_Value")
_Response = TypeVar("_Response")


async def settle(reply: Reply) -> Response:
    """The response of a reply, which may be ready or must be awaited."""
    return await reply if isinstance(reply, Awaitable) else reply


async def encoded_at_length(
    work: LongWork, turns: Turns, context: RequestContext, response: Entity
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
    if not reply.done:
        return _await_response(reply, respond, refuse)
    try:
        value = reply.result()
    except ApiError as error:
        return refuse(error)
    return respond(value)


def respond_to_each(
    reply: Completion[list[ApiError | None]],
    count: int,
    respond: Callable[[Sequence[ApiError | None]], _Response],
) -> _Response | Awaitable[_Response]:
    """The response made of one error, or None, for each of `count` entries of a request.

    They are the reply's value; an error of the reply itself is that of every entry.
    """
    return respond_when_done(reply, respond, lambda error: respond([error] * count))


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
