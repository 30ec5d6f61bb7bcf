"""`python -m benchmarks.ceiling_broker PORT DIRECTORY`: how fast is a client if share fetches cost nothing?

This broker serves the first group normally and records its answers. Every later group gets the same bytes
again: the broker decides, records and reads nothing, and ignores their acknowledgements. The rate of a share
consumer here is the ceiling of this machine for any broker: the work of the client and of the kernel, and the
bare requests and answers. For groups of one consumer.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from typing import Any, cast
from uuid import UUID

import uvloop

from barnabas.protocol.lean_import import import_kio_without_hypothesis

import_kio_without_hypothesis()

from barnabas.broker.config.loading import load_config  # noqa: E402
from barnabas.broker.handlers.lazy_handlers import WARMED_APIS, LazyHandlers  # noqa: E402
from barnabas.broker.network.handler import Handler, Reply, RequestContext  # noqa: E402
from barnabas.broker.network.server import Server  # noqa: E402
from barnabas.broker.node.opening import open_broker  # noqa: E402
from barnabas.protocol.api import ApiKey  # noqa: E402
from barnabas.protocol.codec import RequestBody  # noqa: E402
from barnabas.protocol.decode.share_fetch import ShareFetchBody  # noqa: E402
from barnabas.runtime.clock import SystemClock  # noqa: E402
from barnabas.runtime.collector import keep_out_of_collections  # noqa: E402
from barnabas.runtime.response_budget import EncodedBody  # noqa: E402
from barnabas.share.sessions.session import INITIAL_SHARE_SESSION_EPOCH  # noqa: E402

_RECORDS_ANSWER_BYTES_MIN = 1024
"""An answer of at least this size contains records."""


class ReplayedFetches:
    """Replaces the handler of ShareFetch."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._answers: dict[frozenset[UUID], list[EncodedBody]] = {}
        """The answers to the first group, by the topics that it reads."""
        self._recorded: dict[str, list[EncodedBody]] = {}
        self._replayed: dict[str, Iterator[EncodedBody]] = {}
        """Both are keyed by member id."""

    def __call__(self, context: RequestContext, request: RequestBody) -> Reply:
        assert isinstance(request, ShareFetchBody)
        member_id = request.member_id or ""
        if request.share_session_epoch == INITIAL_SHARE_SESSION_EPOCH:
            self._begin(member_id, frozenset(topic.topic_id for topic in request.topics))
        if member_id in self._replayed and request.max_records:
            answer = next(self._replayed[member_id], None)
            if answer is not None:
                return answer
        reply = self._handler(context, request)
        if member_id in self._recorded:
            self._record(self._recorded[member_id], reply)
        return reply

    def _begin(self, member_id: str, topic_ids: frozenset[UUID]) -> None:
        if topic_ids in self._answers:
            self._replayed[member_id] = iter(self._answers[topic_ids])
        else:
            self._recorded[member_id] = self._answers[topic_ids] = []

    def _record(self, answers: list[EncodedBody], reply: Reply) -> None:
        if isinstance(reply, asyncio.Future):
            pending = cast("asyncio.Future[Reply]", reply)
            pending.add_done_callback(
                lambda done: None if done.cancelled() else self._record(answers, done.result())
            )
        elif isinstance(reply, EncodedBody) and sum(map(len, reply.buffers)) >= _RECORDS_ANSWER_BYTES_MIN:
            answers.append(EncodedBody(reply.buffers))


async def serve(port: str, directory: str) -> None:
    """Serve until the process ends."""
    settings: dict[str, Any] = {"log.dirs": directory, "listeners": f"PLAINTEXT://127.0.0.1:{port}"}
    config = load_config(None, {}, [f"{name}={value}" for name, value in settings.items()])
    broker = await open_broker(config, clock=SystemClock())
    handlers = LazyHandlers(broker)
    handlers[ApiKey.SHARE_FETCH] = ReplayedFetches(handlers[ApiKey.SHARE_FETCH])
    await Server(broker, config, handlers, warmed_apis=WARMED_APIS).start()
    keep_out_of_collections()
    await asyncio.Event().wait()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.Loop) as runner:
        runner.run(serve(*sys.argv[1:]))
