"""One client's connection: bytes in, requests started in order, answers out in the same order.

The protocol requires answers in the order of the requests. Requests also take effect in this order: if a
client commits an offset, or adds a partition to a transaction, and does not wait for the answer, its next
request finds that done. Kafka handles one request at a time for that. Here, requests of the same API may run
together, because their handlers keep their order; so records that are produced while the disk is busy are
written together. A request of another API waits until nothing is outstanding. So does any request after one
that must be alone (`handler` has the rule). A long poll with another request of the same client behind it is
hurried, so that acknowledgements do not wait for new records.

An immediate answer needs no task, and is written together with the other ready answers. A waiting request is
one future. Its answer is written at once if no other request is outstanding, else at the end of the loop's
pass.

Bounds: the frame size; the requests and bytes in flight of the connection; the requests of all connections
together (`request_budget`). At one of the last three, reading pauses until there is room. Reading also pauses
while the socket has not accepted an answer completely, so a client that does not read its answers is not read
from. And it pauses while a client is throttled for exceeding its quotas. If that is longer than
connections.max.idle.ms, the connection is closed as idle, because the broker cannot tell whether the client
is still there.

A frame that cannot be read closes the connection with one line in the log. An exception from a handler is a
bug: it is logged with its traceback, and closes only this connection.
"""

import asyncio
import re
from collections import deque
from collections.abc import Callable, Hashable
from functools import partial
from typing import Final, NamedTuple, Protocol, cast

from barnabas.broker.config.listener import Listener
from barnabas.broker.network.dispatch import Answer, Dispatcher, PendingAnswer
from barnabas.broker.network.handler import Response
from barnabas.broker.network.outstanding import Ended, Outstanding, error_of
from barnabas.broker.network.peer_address import written_address
from barnabas.broker.network.request_budget import RequestBudget
from barnabas.broker.network.unread_bytes import unread_bytes
from barnabas.broker.security.principal import ANONYMOUS, NotIdentified, Principal
from barnabas.protocol.errors import FrameError, Withdrawn
from barnabas.protocol.foreign import ForeignProtocolError
from barnabas.protocol.frame import FrameDecoder
from barnabas.protocol.varint import Buffer
from barnabas.runtime.logging import get_logger
from barnabas.runtime.response_budget import EncodedBody

log = get_logger("connection")

_JOIN_BYTES_MAX: Final = 16 * 1024
"""Answers up to this size together are joined into one buffer, which costs less than one system call with
many. Larger ones, which are mostly records, are joined only if their buffers are small.
"""

_SCRAP_BYTES_MAX: Final = 1024
"""Buffers up to this mean size are always joined."""

_TLS_BUFFER_BYTES: Final = 64 * 1024
"""Encrypted bytes that may wait for a client before reading from it pauses."""

_UNWRITTEN_BYTES_MAX: Final = 256 * 1024
"""At this size, collected answers are written before the end of the pass, so that the write buffer's bound
takes effect."""


Identify = Callable[[asyncio.BaseTransport], Principal]
"""Returns the principal of the client at the other end; raises `NotIdentified`."""


class ConnectionLimits(NamedTuple):
    """The bounds of one connection."""

    frame_bytes_max: int = 100 * 1024 * 1024
    requests_in_flight_max: int = 64
    bytes_in_flight_max: int = 8 * 1024 * 1024
    """For requests under way plus answers that wait for earlier ones; exceeded by at most one request."""


class ConnectionOwner(Protocol):
    """The server, as its connections use it."""

    @property
    def request_budget(self) -> RequestBudget: ...

    def connection_opened(self, connection: "Connection") -> bool:
        """False if there is no room for it."""
        ...

    def connection_closed(self, connection: "Connection", unfinished: list[asyncio.Future[Response]]) -> None:
        """The connection is gone; `unfinished` are started requests without an answer, which still run."""
        ...

    def note(self, write: Callable[..., None], event: str, key: Hashable, **details: object) -> None:
        """Log an event that clients can cause often; repeats with the same key are only counted."""
        ...

    def give_back(self, reserved_bytes: int) -> None:
        """Return `reserved_bytes` to the response budget: a client has received these answers, or is gone."""
        ...


class Gate(Protocol):
    """Stands in front of the dispatcher, and passes the requests of authenticated clients on."""

    def begin(self) -> None:
        """The connection is made."""
        ...

    def start(self, frame: bytes | memoryview) -> Answer | PendingAnswer:
        """See `Dispatcher.start`."""
        ...

    def answer(self, pending: PendingAnswer, response: Response) -> Answer:
        """See `Dispatcher.answer`."""
        ...

    def close(self) -> None:
        """The connection is gone."""
        ...


class Connection(asyncio.BufferedProtocol):
    """One client's connection; the module's docstring has its rules."""

    def __init__(
        self,
        connection_id: int,
        listener: Listener,
        dispatcher: Dispatcher,
        owner: ConnectionOwner,
        limits: ConnectionLimits,
        identify: Identify | None = None,
    ) -> None:
        """`identify` finds the client's principal in its certificate; without it the client is anonymous."""
        self.connection_id = connection_id
        self.listener = listener
        self.principal = ANONYMOUS
        self._identify = identify
        self._gate: Gate | None = None
        self.client_host = ""
        self._client_address = ""
        self.heard = True
        """Set whenever bytes arrive; the server's sweep for idle connections clears it."""
        self._dispatcher = dispatcher
        self._owner = owner
        self._limits = limits
        self._decoder = FrameDecoder(limits.frame_bytes_max)
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._frames: deque[bytes | memoryview | FrameError] = deque()
        self._outstanding: deque[Outstanding] = deque()
        self._held_bytes = 0
        self._share = owner.request_budget.open(self)
        self._queued_bytes = 0
        """The size of the large frame in `_frames`; only the last one can be large. Small frames fit the
        receive buffer.
        """
        self._started_bytes = 0
        """Requests whose handlers have not replied."""
        self._unwritten: list[Buffer] = []
        self._unwritten_bytes = 0
        self._release_scheduled = False
        self._reading_paused = False
        self._writing_paused = False
        self._unwritten_reserved_bytes = 0
        self._unread_reserved_bytes = 0
        """Bytes of the response budget: for answers not written yet, and for answers that the client has not
        read.
        """
        self._throttled: asyncio.TimerHandle | None = None
        """Ends the throttle time, in which no request of the client is started."""
        self._draining = False
        self._closed = False

    @property
    def closed(self) -> bool:
        """True once nothing more can be sent."""
        return self._closed

    @property
    def waiting(self) -> bool:
        """True while a request is unanswered, or cannot be received because others hold the room."""
        return bool(self._outstanding) or self._share.waits

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        try:
            self._begin()
        except BaseException:
            # Otherwise uvloop keeps the connection for ever, and reads nothing from it.
            self.abort()
            raise

    def _begin(self) -> None:
        transport = self._transport
        assert transport is not None
        peer = transport.get_extra_info("peername")
        self.client_host = f"/{peer[0]}" if peer else "/"
        self._client_address = written_address(peer)
        local = transport.get_extra_info("sockname")
        if local:
            self.listener = self.listener.reached_at(local[0])
        # The rest of a large answer keeps all of it in memory. So reading pauses until the client has all of
        # it. Without a buffer the transport also writes at once. With TLS a buffer is needed: the end of the
        # handshake is still in it, and the next read sends it.
        has_tls = transport.get_extra_info("ssl_object") is not None
        transport.set_write_buffer_limits(high=_TLS_BUFFER_BYTES if has_tls else 0, low=0)
        if not self._owner.connection_opened(self):
            self.abort()
            return
        if self._gate is not None:
            self._gate.begin()
        if self._identify is not None:
            try:
                self.principal = self._identify(transport)
            except NotIdentified as error:
                self.cut_off(str(error))

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._decoder.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        self.heard = True
        frames = self._decoder.buffer_updated(nbytes)
        if frames:
            self._frames.extend(frames)
            if isinstance(frames[-1], memoryview):
                self._queued_bytes = len(frames[-1])
            self._start_frames()
        elif self._decoder.held_bytes != self._share.partial_bytes:
            self._regulate_reading()

    def pause_writing(self) -> None:
        self._writing_paused = True
        self._regulate_reading()

    def resume_writing(self) -> None:
        self._writing_paused = False
        self._give_back()
        self._start_frames()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed = True
        if self._gate is not None:
            self._gate.close()
            self._gate = None  # it has this connection, and both would stay until a collection
        if self._throttled is not None:
            self._throttled.cancel()
        self._forget_frames()
        self._share.close()
        self._unwritten.clear()
        self._unread_reserved_bytes += self._unwritten_reserved_bytes
        self._unwritten_reserved_bytes = 0
        unfinished: list[asyncio.Future[Response]] = []
        for outstanding in self._outstanding:
            outstanding.withdraw()
            self._drop(outstanding)
            if outstanding.future is not None and not outstanding.future.done():
                unfinished.append(outstanding.future)
        self._outstanding.clear()
        self._give_back()
        self._owner.connection_closed(self, unfinished)

    # Called by the gate.

    def admit(self, *, for_ever: bool) -> None:
        """The client has authenticated. With `for_ever` the gate is needed no more."""
        self._decoder.max_frame_bytes = self._limits.frame_bytes_max
        if for_ever:
            self._gate = None

    # Called by the server.

    def guard(self, gate: Gate, frame_bytes_max: int) -> None:
        """Set a gate in front of the dispatcher, and the largest request until it admits the client."""
        self._gate = gate
        self._decoder.max_frame_bytes = frame_bytes_max

    def drain(self) -> None:
        """Start no more requests, end waits early, and close once every started request is answered."""
        self._draining = True
        self._forget_frames()
        for outstanding in self._outstanding:
            outstanding.hurry()
        if not self._outstanding:
            self._close()
        else:
            self._regulate_reading()

    def abort(self) -> None:
        """Close now; unsent answers are lost."""
        self._closed = True
        if self._transport is not None:
            self._transport.abort()

    # Called by the request budget.

    @property
    def is_held_up(self) -> bool:
        return bool(self._frames) or self._is_full()

    def unread_bytes(self) -> int:
        return 0 if self._transport is None else unread_bytes(self._transport)

    def room_changed(self) -> None:
        self._regulate_reading()

    def cut_off(self, reason: str) -> None:
        self._owner.note(
            log.warning, "connection cut off", self.client_host, client=self._client_address, reason=reason
        )
        self.abort()

    # Requests in.

    def _start_frames(self) -> None:
        while self._frames and not self._is_full():
            if self._outstanding and self._must_wait(self._frames[0]):
                break
            self._start(self._frames.popleft())
            if self._unwritten_bytes >= _UNWRITTEN_BYTES_MAX:
                self._write()
        if not self._frames:
            self._queued_bytes = 0
        self._write()
        if self._frames and self._outstanding:
            self._outstanding[-1].hurry()
        share = self._share
        if (  # In the plain case nothing is to be regulated: it is read, and no request is held.
            self._frames
            or self._outstanding
            or share.budget.is_full
            or share.whole_bytes
            or share.partial_bytes
            or self._decoder.is_receiving_large
            or self._reading_paused
            or self._writing_paused
            or self._throttled is not None
            or self._draining
        ):
            self._regulate_reading()

    def _must_wait(self, frame: bytes | memoryview | FrameError) -> bool:
        """Whether the next request must wait for outstanding ones; see the module's docstring."""
        if isinstance(frame, FrameError):
            return False
        last = self._outstanding[-1]
        return last.is_alone or last.api_key != int.from_bytes(frame[:2])

    def _start(self, frame: bytes | memoryview | FrameError) -> None:
        if self._outstanding:
            # The requests before it were hurried when it arrived.
            self._outstanding[-1].hurry()
        if isinstance(frame, FrameError):
            self._refuse(frame)
            return
        try:
            gate = self._gate
            answer = self._dispatcher.start(self, frame) if gate is None else gate.start(frame)
        except FrameError as error:
            self._refuse(error)
        except Exception as error:
            self._fail(error)
        else:
            if isinstance(answer, PendingAnswer):
                self._await(answer, len(frame))
                return
            if answer.throttle_ms:
                self.throttle(answer.throttle_ms)
            if self._outstanding:
                self._hold(Outstanding(self._outstanding[-1].api_key), answer)
            else:
                self._collect(answer)

    def _await(self, pending: PendingAnswer, request_bytes: int) -> None:
        outstanding = Outstanding(pending.header.api_key, request_bytes)
        self._held_bytes += request_bytes
        self._started_bytes += request_bytes
        self._outstanding.append(outstanding)
        outstanding.wait(pending.reply, partial(self._on_reply, outstanding, pending))

    def _is_full(self) -> bool:
        return (
            self._writing_paused
            or self._closed
            or self._draining
            or self._throttled is not None
            or len(self._outstanding) >= self._limits.requests_in_flight_max
            or self._held_bytes >= self._limits.bytes_in_flight_max
        )

    def _regulate_reading(self) -> None:
        """Pause or resume reading: read only while there is room, and no received request waits."""
        self._note_requests()
        pause = self.is_held_up or not self._share.may_read()
        if self._closed or self._transport is None or pause == self._reading_paused:
            return
        self._reading_paused = pause
        (self._transport.pause_reading if pause else self._transport.resume_reading)()

    def _note_requests(self) -> None:
        """Report the bytes of this connection's requests to the budget."""
        partial_bytes = 0 if self._closed else self._decoder.held_bytes
        whole_bytes = self._queued_bytes + self._started_bytes
        self._share.note(partial_bytes, self._decoder.awaited_bytes, whole_bytes)

    def _forget_frames(self) -> None:
        self._frames.clear()
        self._queued_bytes = 0
        self._note_requests()

    def throttle(self, throttle_ms: int) -> None:
        """Start no request for `throttle_ms`, or for the rest of an earlier throttle time if that is longer
        (KIP-219).
        """
        until = self._loop.time() + throttle_ms / 1000
        if self._throttled is not None:
            if self._throttled.when() >= until:
                return
            self._throttled.cancel()
        self._throttled = self._loop.call_at(until, self._end_throttling)
        self._regulate_reading()

    def close_after(self, wait_ms: int) -> None:
        """Start no request, and close after `wait_ms`, because the client connects too often (KIP-612)."""
        self._throttled = self._loop.call_later(wait_ms / 1000, self.abort)
        self._regulate_reading()

    def _end_throttling(self) -> None:
        self._throttled = None
        self._start_frames()

    # Answers out.

    def _on_reply(self, outstanding: Outstanding, pending: PendingAnswer, ended: Ended) -> None:
        self._started_bytes -= outstanding.request_bytes
        self._note_requests()
        error = error_of(ended)
        if error is not None:
            self._on_failure(outstanding, error)
            return
        response = ended.result()
        if self._closed or outstanding.is_dropped:
            if isinstance(response, EncodedBody):
                self._owner.give_back(response.reserved_bytes)
            return
        try:
            gate = self._gate
            if gate is None:
                answer = self._dispatcher.answer(pending, response)
            else:
                answer = gate.answer(pending, response)
        except Exception as defect:
            self._fail(defect)
            return
        if answer.throttle_ms:
            self.throttle(answer.throttle_ms)
        self._set_answer(outstanding, answer)
        self._release_when_due()

    def _on_failure(self, outstanding: Outstanding, error: BaseException) -> None:
        if isinstance(error, FrameError):
            self._drop_from(outstanding)
            self._refuse(error)
        elif isinstance(error, asyncio.CancelledError | Withdrawn):
            if not (self._closed or outstanding.is_dropped):
                self._fail(error)
        else:
            self._fail(error)

    def _hold(self, outstanding: Outstanding, answer: Answer) -> None:
        """Keep an answer until the earlier ones are written."""
        self._outstanding.append(outstanding)
        self._set_answer(outstanding, answer)

    def _set_answer(self, outstanding: Outstanding, answer: Answer) -> None:
        outstanding.answer = answer
        answer_bytes = sum(map(len, answer.buffers))
        self._held_bytes += answer_bytes - outstanding.held_bytes
        outstanding.held_bytes = answer_bytes

    def _release_when_due(self) -> None:
        """Write ready answers: at once if only one request is outstanding, else at the end of this pass, so
        that the answers of one pass share a write.
        """
        if self._release_scheduled or self._outstanding[0].answer is None:
            return
        if len(self._outstanding) == 1:
            self._release()
        else:
            self._release_scheduled = True
            self._loop.call_soon(self._release)

    def _release(self) -> None:
        self._release_scheduled = False
        while self._outstanding:
            answer = self._outstanding[0].answer
            if answer is None:
                break
            self._held_bytes -= self._outstanding.popleft().held_bytes
            self._collect(answer)
        self._start_frames()
        if self._draining and not self._outstanding:
            self._close()

    def _collect(self, answer: Answer) -> None:
        self._unwritten += answer.buffers
        self._unwritten_bytes += sum(map(len, answer.buffers))
        self._unwritten_reserved_bytes += answer.reserved_bytes

    def _write(self) -> None:
        if not self._unwritten or self._closed or self._transport is None:
            return
        buffers, size_bytes = self._unwritten, self._unwritten_bytes
        self._unwritten, self._unwritten_bytes = [], 0
        if size_bytes <= max(_JOIN_BYTES_MAX, len(buffers) * _SCRAP_BYTES_MAX):
            self._transport.write(b"".join(buffers))
        else:
            self._transport.writelines(buffers)
        self._unread_reserved_bytes += self._unwritten_reserved_bytes
        self._unwritten_reserved_bytes = 0
        if self._unread_reserved_bytes and not self._writing_paused:
            self._give_back()

    def _give_back(self) -> None:
        """Return the reservation of answers that the client's socket has accepted, or never will."""
        if self._unread_reserved_bytes:
            self._owner.give_back(self._unread_reserved_bytes)
            self._unread_reserved_bytes = 0

    # The end.

    def _drop(self, outstanding: Outstanding) -> None:
        """Discard the request's answer."""
        outstanding.is_dropped = True
        if outstanding.answer is not None:
            self._owner.give_back(outstanding.answer.reserved_bytes)

    def _drop_from(self, first: Outstanding) -> None:
        """Discard the answers of this request and of those after it."""
        while not first.is_dropped:
            last = self._outstanding.pop()
            last.withdraw()
            self._held_bytes -= last.held_bytes
            self._drop(last)

    def _refuse(self, error: FrameError) -> None:
        """Handle an error of the peer: answer the requests before it, and none after it."""
        reason = str(error)
        kind = re.sub(r"\d+", "", reason)  # the client chooses the numbers
        key = self.client_host, kind
        self._owner.note(
            log.warning, "connection refused a request", key, client=self._client_address, reason=reason
        )
        if isinstance(error, ForeignProtocolError) and not self._outstanding:
            self._collect(Answer([error.answer]))
        self.drain()

    def _fail(self, error: BaseException) -> None:
        """Handle a bug of the broker: log it and close the connection."""
        self._owner.note(
            log.error,
            "request failed",
            type(error).__name__,
            client=self._client_address,
            connection_id=self.connection_id,
            error=repr(error),
            exc_info=error,
        )
        self._close()

    def _close(self) -> None:
        """Close after the ready answers are sent."""
        if not self._closed:
            self._write()
            self._closed = True
            if self._transport is not None:
                self._transport.close()
