"""The handlers of a broker for tests: each request is shown to the controls before its handler gets it.

A broker that serves has the plain handlers, so nothing here costs it anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.handlers.lazy_handlers import LazyHandlers
from barnabas.broker.network.handler import Handler, Reply, RequestContext, Response
from barnabas.broker.network.replies import settle
from barnabas.broker.testing.connected_members import ConnectedMembers
from barnabas.broker.testing.error_answers import error_answer
from barnabas.broker.testing.faults import FaultKind, FaultPlan, Faults
from barnabas.broker.testing.request_names import names_in
from barnabas.protocol.api import ApiKey
from barnabas.protocol.codec import RequestBody
from barnabas.protocol.errors import FrameError
from barnabas.runtime.response_budget import EncodedBody

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker

_MS_PER_SECOND = 1000


class InterceptedHandlers(LazyHandlers):
    """The handlers by API key, each behind the faults that a test has planned."""

    def __init__(self, broker: Broker, faults: Faults, members: ConnectedMembers) -> None:
        super().__init__(broker)
        self._faults = faults
        self._members = members

    def __missing__(self, api_key: int) -> Handler:
        handler = super().__missing__(api_key)
        self[api_key] = intercepted = partial(self._intercept, handler)
        return intercepted

    def _intercept(self, handler: Handler, context: RequestContext, request: RequestBody, /) -> Reply:
        self._members.note(context, request)
        plan = self._fault_of(context, request)
        go_on = partial(handler, context, request)
        return go_on() if plan is None else _carry_out(plan, self._broker, context, request, go_on)

    def _fault_of(self, context: RequestContext, request: RequestBody) -> FaultPlan | None:
        api = ApiKey(context.api_key)
        if not self._faults.may_match(api):
            return None
        return self._faults.match(api, *names_in(self._broker, context.api_version, request))


def _carry_out(
    plan: FaultPlan, broker: Broker, context: RequestContext, request: RequestBody, go_on: Callable[[], Reply]
) -> Reply:
    match plan.kind:
        case FaultKind.REFUSE:
            raise FrameError("A fault that a test has planned refuses the request.")
        case FaultKind.ERROR:
            return error_answer(broker, context, request, plan.error)
        case FaultKind.DELAY:
            return _delayed(plan.delay_ms, go_on)
        case FaultKind.CUT:
            return _cut(broker, go_on)


async def _delayed(delay_ms: int, go_on: Callable[[], Reply]) -> Response:
    await asyncio.sleep(delay_ms / _MS_PER_SECOND)
    return await settle(go_on())


async def _cut(broker: Broker, go_on: Callable[[], Reply]) -> Response:
    response = await settle(go_on())
    if isinstance(response, EncodedBody):
        broker.response_budget.give_back(response.reserved_bytes)
    raise FrameError("A fault that a test has planned cuts the connection.")
