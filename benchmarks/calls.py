"""`python -m benchmarks.calls`: the way of one request through the broker, counted by `sys.setprofile`.

Counted are the calls from the request's bytes to the answer's bytes, in a broker with production settings in
a thread of this process. They are the same on every machine, so `tests/broker/test_calls.py` bounds them.
"""

import argparse
import asyncio
import statistics
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

import uvloop
from tests.clients.raw_frames import RawConnection, frame
from tests.conformance.messages import encoded, message, message_type, read

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.handlers.lazy_handlers import WARMED_APIS, LazyHandlers
from barnabas.broker.network.connection import Connection
from barnabas.broker.network.server import Server
from barnabas.broker.node.opening import open_broker
from barnabas.protocol.api import APIS, ApiKey
from barnabas.protocol.record_batch import build_batch
from barnabas.runtime.clock import SystemClock

WARM_UP_REQUESTS: Final = 100
COUNTED_REQUESTS: Final = 100


class Calls(NamedTuple):
    """The calls of one request."""

    functions: int
    """Of Python, generators and comprehensions included."""
    builtins: int
    tuples: int
    """Named tuples that are built by a call of their class, among the functions."""
    files: int
    """Of Barnabas."""
    depth: int
    """The deepest stack, from the connection on."""


class _Counter:
    """The profile function of the broker's thread."""

    def __init__(self) -> None:
        self.counted: SimpleQueue[Calls] = SimpleQueue()
        self._depth = 0
        self._deepest = self._functions = self._builtins = self._tuples = 0
        self._files: set[str] = set()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if not self._depth:
            if event == "call" and frame.f_code is Connection.buffer_updated.__code__:
                self._deepest = self._functions = self._builtins = self._tuples = 0
                self._files = set()
                self._enter(frame.f_code)
        elif event == "call":
            self._enter(frame.f_code)
        elif event == "return":
            self._depth -= 1
            if not self._depth:
                self._note()
        elif event == "c_call":
            self._builtins += 1

    def _enter(self, code: CodeType) -> None:
        self._depth += 1
        self._deepest = max(self._deepest, self._depth)
        self._functions += 1
        self._tuples += code.co_name == "__new__" or code.co_filename.startswith("<string>")
        self._files.add(code.co_filename)

    def _note(self) -> None:
        files = sum("barnabas" in name for name in self._files)
        self.counted.put(Calls(self._functions, self._builtins, self._tuples, files, self._deepest))


class _Broker:
    """A broker in a thread, whose requests are counted."""

    def __init__(self, directory: str) -> None:
        self._config = BrokerConfig({"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": directory})
        self.counter = _Counter()
        self.address = ""
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        self._started.wait()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _serve(self) -> None:
        with asyncio.Runner(loop_factory=uvloop.Loop) as runner:
            runner.run(self._run())

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        try:
            broker = await open_broker(self._config, clock=SystemClock())
            server = Server(broker, self._config, LazyHandlers(broker), warmed_apis=WARMED_APIS)
            (listener,) = await server.start()
            self.address = listener.address
        finally:
            self._started.set()
        sys.setprofile(self.counter)
        await self._stop.wait()
        sys.setprofile(None)
        await server.close()
        await broker.close()


class _Client:
    """One connection; requests have the newest version of their API."""

    def __init__(self, connection: RawConnection) -> None:
        self._connection = connection

    def ask(self, api: ApiKey, **values: Any) -> Any:
        version = APIS[api].max_version
        body = encoded(message(message_type(APIS[api].name, version, "request"), values))
        flexible = version >= APIS[api].flexible_version
        header = struct.pack(">hhih", api, version, 7, 5) + b"calls" + bytes(flexible)
        answer = self._connection.exchange(frame(header + body))
        return read(message_type(APIS[api].name, version, "response"), answer[4 + flexible :])


class _Member:
    """A member of a share group over a topic of one partition, with a producer and a consumer beside it."""

    def __init__(self, connection: RawConnection) -> None:
        self._client = _Client(connection)
        topic = {"name": "counted", "num_partitions": 1, "replication_factor": 1}
        created = self._client.ask(ApiKey.CREATE_TOPICS, topics=[topic])
        self._topic_id = created.topics[0].topic_id
        reset = {"name": "share.auto.offset.reset", "config_operation": 0, "value": "earliest"}
        group = {"resource_type": 32, "resource_name": "group", "configs": [reset]}
        self._client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=[group])
        self._member = {"group_id": "group", "member_id": "member-1"}
        self._member_epoch = 0
        while not self.heartbeat(["counted"]):
            time.sleep(0.01)
        self._epoch = 0
        self._held: int | None = None
        self._offset = 0

    def heartbeat(self, topics: list[str] | None = None) -> bool:
        """Whether a partition has just been assigned."""
        answer = self._client.ask(
            ApiKey.SHARE_GROUP_HEARTBEAT,
            **self._member,
            member_epoch=self._member_epoch,
            subscribed_topic_names=topics,
        )
        _check(answer.error_code)
        self._member_epoch = answer.member_epoch
        return answer.assignment is not None and bool(answer.assignment.topic_partitions)

    def produce(self) -> None:
        records = build_batch(0, [(None, bytes(100))], leader_epoch=-1, timestamp_ms=time.time_ns() // 10**6)
        partition = {"index": 0, "records": records}
        topic = {"topic_id": self._topic_id, "partition_data": [partition]}
        answer = self._client.ask(ApiKey.PRODUCE, acks=-1, topic_data=[topic])
        _check(answer.responses[0].partition_responses[0].error_code)

    def share_fetch(self) -> None:
        """Accepts the record that the member holds, and acquires the next one."""
        answer = self._client.ask(
            ApiKey.SHARE_FETCH,
            **self._session_part(),
            max_wait=500,
            min_bytes=1,
            max_bytes=50_000_000,
            max_records=1,
            batch_size=1,
        )
        _check(answer.error_code)
        (acquired,) = answer.responses[0].partitions[0].acquired_records
        assert acquired.first_offset == acquired.last_offset, answer
        self._held = acquired.first_offset

    def acknowledge(self) -> None:
        """Accepts the record that the member holds."""
        answer = self._client.ask(ApiKey.SHARE_ACKNOWLEDGE, **self._session_part())
        _check(answer.responses[0].partitions[0].error_code)
        self._held = None

    def fetch(self) -> None:
        """An ordinary consumer reads one record."""
        partition = {"partition": 0, "fetch_offset": self._offset, "partition_max_bytes": 100}
        topic = {"topic_id": self._topic_id, "partitions": [partition]}
        answer = self._client.ask(
            ApiKey.FETCH, max_wait=500, min_bytes=1, max_bytes=100, topics=[topic], session_epoch=-1
        )
        _check(answer.error_code)
        assert answer.responses[0].partitions[0].records, answer
        self._offset += 1

    def _session_part(self) -> dict[str, Any]:
        """The common part of ShareFetch and ShareAcknowledge, which accepts a held record."""
        batches = []
        if self._held is not None:
            batches = [{"first_offset": self._held, "last_offset": self._held, "acknowledge_types": [1]}]
        partition = {"partition_index": 0, "acknowledgement_batches": batches}
        topics = [{"topic_id": self._topic_id, "partitions": [partition]}]
        epoch, self._epoch = self._epoch, self._epoch + 1
        return {**self._member, "share_session_epoch": epoch, "topics": topics}


def _check(error: Any) -> None:
    assert not error, error


def _works(member: _Member) -> dict[str, tuple[Callable[[], object], ...]]:
    """The steps of each work; the last one is counted."""
    return {
        "ShareFetch, accept one and acquire one": (member.produce, member.share_fetch),
        "Produce of one record": (member.produce,),
        "ShareAcknowledge": (member.produce, member.share_fetch, member.acknowledge),
        "Fetch of one record": (member.fetch,),
        "ShareGroupHeartbeat": (member.heartbeat,),
    }


def count_calls() -> dict[str, Calls]:
    """The median of each count, by the name of the work."""
    with tempfile.TemporaryDirectory(prefix="calls-") as directory:
        broker = _Broker(directory)
        try:
            with RawConnection(broker.address) as connection:
                works = _works(_Member(connection))
                return {name: _count(broker.counter, steps) for name, steps in works.items()}
        finally:
            broker.stop()


def _count(counter: _Counter, steps: tuple[Callable[[], object], ...]) -> Calls:
    _drain(counter.counted)
    counted: list[Calls] = []
    for _ in range(WARM_UP_REQUESTS + COUNTED_REQUESTS):
        calls = [_counted(counter, step) for step in steps]
        counted.append(calls[-1])
    return Calls(*map(statistics.median_low, zip(*counted[WARM_UP_REQUESTS:], strict=True)))


def _counted(counter: _Counter, step: Callable[[], object]) -> Calls:
    step()
    return counter.counted.get()


def _drain(counted: SimpleQueue[Calls]) -> None:
    while not counted.empty():
        counted.get()


def main() -> None:
    argparse.ArgumentParser(prog="python -m benchmarks.calls", description=__doc__).parse_args()
    print("".ljust(40), *(name.rjust(9) for name in Calls._fields))
    for name, calls in count_calls().items():
        print(name.ljust(40), *(f"{count:9}" for count in calls))


if __name__ == "__main__":
    main()
