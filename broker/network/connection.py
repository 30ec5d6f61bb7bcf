"""One client's connection: bytes in, requests started in order, answers out in the same order.

Requests are answered in the order in which they came, as the protocol demands, and none overtakes another: a
client that commits an offset, or adds a partition to a transaction, and doesn't wait for the answer finds it
done by its next request. Kafka takes one request at a time for that; here those of one API may be under way
together, since their handlers keep their order, so that what is produced while the disk is busy is written
together. Another API's request waits until nothing is outstanding, and so does any behind a handler that is a
coroutine, whose steps others could come between, or behind a large request. A long poll that another request
of the same client queues up behind is told to hurry: acknowledgements should not wait for records to arrive.

What is answered at once needs no task and is written together with whatever else is ready; a waiting request
is one future, whose answer goes out at once if it is the only one that is outstanding, and else at the end of
the loop's pass.

Bounds: the frame size; the requests and bytes in flight of the connection; the requests of all connections
together (`request_budget`). At one of the last three, reading pauses until there is room. It also pauses
while an answer isn't wholly in the socket: a client that doesn't read its answers is no longer read from
either. And it pauses while a client pays for having been above its quotas; one that would pay for longer than
idle connections are kept is closed as idle, since it can't be told whether anybody is still there.

A frame that cannot be read closes the connection with one line in the log. An exception out of a handler is
our bug: it is logged with its traceback and closes this connection, no other.
"""

import asyncio
import re
from collections import deque
from collections.abc import Callable, Hashable
from functools import partial
from types import CoroutineType
from typing import NamedTuple, Protocol, cast

from barnabas.broker.config.listener import Listener
from barnabas.broker.network.dispatch import Answer, Dispatcher, PendingAnswer
from barnabas.broker.network.handler import Response
from barnabas.broker.network.large_request import LargeRequest
from barnabas.broker.network.outstanding import Ended, Outstanding
from barnabas.broker.network.peer_address import written_address
from barnabas.broker.network.request_budget import RequestBudget
from barnabas.broker.network.unread_bytes import unread_bytes
from barnabas.protocol.errors import FrameError
from barnabas.protocol.foreign import ForeignProtocolError
from barnabas.protocol.frame import FrameDecoder
from barnabas.protocol.varint import Buffer
from barnabas.runtime.logging import get_logger
from barnabas.runtime.purgatory import Withdrawn
from barnabas.runtime.response_budget import EncodedBody

log = get_logger("connection")

_JOIN_BYTES_MAX = 16 * 1024
"""Answers up to this size together are joined into one buffer: cheaper than handing each to the kernel.
Larger ones, which are mostly records, are copied only if they come in scraps."""

_SCRAP_BYTES_MAX = 1024
"""Buffers of this mean size and less are joined, however many they are."""

_UNWRITTEN_BYTES_MAX = 256 * 1024
"""Answers collected before they are written even though the pass isn't over, so that the write buffer's
bound is noticed."""


class ConnectionLimits(NamedTuple):
    """What one connection may hold at most."""

    frame_bytes_max: int = 100 * 1024 * 1024
    requests_in_flight_max: int = 64
    bytes_in_flight_max: int = 8 * 1024 * 1024
    """Requests being handled plus answers that wait for earlier ones; exceeded by at most one request."""


class ConnectionOwner(Protocol):
    """The server, as its connections know it."""

    @property
    def request_budget(self) -> RequestBudget: ...

    def connection_opened(self, connection: "Connection") -> bool:
        """False if there is no room for it."""
        ...

    def connection_closed(self, connection: "Connection", unfinished: list[asyncio.Future[Response]]) -> None:
        """Gone; `unfinished` are requests that were started, not answered, and still run to their end."""
        ...

    def note(self, write: Callable[..., None], event: str, key: Hashable, **details: object) -> None:
        """Log what clients may cause often: repeats of the same key are counted."""
        ...

    def give_back(self, reserved_bytes: int) -> None:
        """A client has got answers for which so much was taken of the response budget, or is gone."""
        ...


class Connection(asyncio.BufferedProtocol):
    """See the module."""

    def __init__(
        self,
        connection_id: int,
        listener: Listener,
        dispatcher: Dispatcher,
        owner: ConnectionOwner,
        limits: ConnectionLimits,
    ) -> None:
        self.connection_id = connection_id
        self.listener = listener
        self.client_host = ""
        self._client_address = ""
        self.heard = True
        """Set whenever bytes arrive; whoever looks for idle connections clears it."""
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
        """The large frame among `_frames`, which is the last of them. Small ones fit the receive buffer."""
        self._started_bytes = 0
        """Requests whose handlers have not replied."""
        self._unwritten: list[Buffer] = []
        self._unwritten_bytes = 0
        self._release_scheduled = False
        self._reading_paused = False
        self._writing_paused = False
        self._unwritten_reserved_bytes = 0
        self._unread_reserved_bytes = 0
        """Of the response budget: for what waits to be written, and for what the client has to read yet."""
        self._throttled: asyncio.TimerHandle | None = None
        """Ends the time in which nothing is taken from a client that is above its quotas."""
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

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        try:
            self._begin()
        except BaseException:
            # Else uvloop keeps the connection for ever, and reads nothing from it.
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
        # The rest of a large answer holds the whole of it in memory, so the client has it all or counts as
        # one that doesn't read. A transport with no room to spare also writes at once what it is given.
        transport.set_write_buffer_limits(high=0)
        if not self._owner.connection_opened(self):
            self.abort()

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

    # What the server calls.

    def drain(self) -> None:
        """Start nothing more, cut waits short, and close once everything started has been answered."""
        self._draining = True
        self._forget_frames()
        for outstanding in self._outstanding:
            outstanding.hurry()
        if not self._outstanding:
            self._close()
        else:
            self._regulate_reading()

    def abort(self) -> None:
        """Close now; what has not been sent is lost."""
        self._closed = True
        if self._transport is not None:
            self._transport.abort()

    # What the request budget calls.

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
        while self._frames and not self._is_full() and not self._must_wait(self._frames[0]):
            self._start(self._frames.popleft())
            if self._unwritten_bytes >= _UNWRITTEN_BYTES_MAX:
                self._write()
        if not self._frames:
            self._queued_bytes = 0
        self._write()
        if self._frames and self._outstanding:
            self._outstanding[-1].hurry()
        self._regulate_reading()

    def _must_wait(self, frame: bytes | memoryview | FrameError) -> bool:
        """Whether the next request may not be started yet, for what is outstanding; see the module."""
        if not self._outstanding or isinstance(frame, FrameError):
            return False
        last = self._outstanding[-1]
        is_alone = isinstance(last.reply, CoroutineType | LargeRequest)
        return is_alone or last.api_key != int.from_bytes(frame[:2])

    def _start(self, frame: bytes | memoryview | FrameError) -> None:
        if self._outstanding:
            # Everything before it was told when this one arrived.
            self._outstanding[-1].hurry()
        if isinstance(frame, FrameError):
            self._refuse(frame)
            return
        try:
            answer = self._dispatcher.start(self, frame)
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
        """Read exactly while there is room for what is read, and nothing read that waits."""
        self._note_requests()
        if self._closed or self._transport is None:
            return
        pause = self.is_held_up or not self._share.may_read()
        if pause == self._reading_paused:
            return
        self._reading_paused = pause
        if pause:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _note_requests(self) -> None:
        """Tell the budget what this connection holds of requests."""
        partial_bytes = 0 if self._closed else self._decoder.held_bytes
        whole_bytes = self._queued_bytes + self._started_bytes
        self._share.note(partial_bytes, self._decoder.awaited_bytes, whole_bytes)

    def _forget_frames(self) -> None:
        self._frames.clear()
        self._queued_bytes = 0
        self._note_requests()

    def throttle(self, throttle_ms: int) -> None:
        """Take no request for so long, or for as long as was said before, whichever is longer (KIP-219)."""
        until = self._loop.time() + throttle_ms / 1000
        if self._throttled is not None:
            if self._throttled.when() >= until:
                return
            self._throttled.cancel()
        self._throttled = self._loop.call_at(until, self._end_throttling)
        self._regulate_reading()

    def turn_away(self, wait_ms: int) -> None:
        """Take no request at all, and close after so long: its client connects too often (KIP-612)."""
        self._throttled = self._loop.call_later(wait_ms / 1000, self.abort)
        self._regulate_reading()

    def _end_throttling(self) -> None:
        self._throttled = None
        self._start_frames()

    # Answers out.

    def _on_reply(self, outstanding: Outstanding, pending: PendingAnswer, ended: Ended) -> None:
        self._started_bytes -= outstanding.request_bytes
        self._note_requests()
        try:
            response = ended.result()
            if self._closed or outstanding.is_dropped:
                if isinstance(response, EncodedBody):
                    self._owner.give_back(response.reserved_bytes)
                return
            answer = self._dispatcher.answer(pending, response)
            if answer.throttle_ms:
                self.throttle(answer.throttle_ms)
            self._set_answer(outstanding, answer)
        except (asyncio.CancelledError, Withdrawn) as error:
            if not (self._closed or outstanding.is_dropped):
                self._fail(error)
        except FrameError as error:
            self._drop_from(outstanding)
            self._refuse(error)
        except Exception as error:
            self._fail(error)
        else:
            self._release_when_due()

    def _hold(self, outstanding: Outstanding, answer: Answer) -> None:
        """Keep an answer until those before it have gone."""
        self._outstanding.append(outstanding)
        self._set_answer(outstanding, answer)

    def _set_answer(self, outstanding: Outstanding, answer: Answer) -> None:
        outstanding.answer = answer
        answer_bytes = sum(map(len, answer.buffers))
        self._held_bytes += answer_bytes - outstanding.held_bytes
        outstanding.held_bytes = answer_bytes

    def _release_when_due(self) -> None:
        """Release what is answered: at once if it is all that is outstanding, else at the end of this pass,
        so that what else is answered in it goes out in the same write.
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
        if not self._writing_paused:
            self._give_back()

    def _give_back(self) -> None:
        """What was reserved for answers that the client's socket has taken whole, or never will."""
        if self._unread_reserved_bytes:
            self._owner.give_back(self._unread_reserved_bytes)
            self._unread_reserved_bytes = 0

    # The end.

    def _drop(self, outstanding: Outstanding) -> None:
        """Nobody waits for this answer any more."""
        outstanding.is_dropped = True
        if outstanding.answer is not None:
            self._owner.give_back(outstanding.answer.reserved_bytes)

    def _drop_from(self, first: Outstanding) -> None:
        """This request and those behind it are answered no more."""
        while not first.is_dropped:
            last = self._outstanding.pop()
            last.withdraw()
            self._held_bytes -= last.held_bytes
            self._drop(last)

    def _refuse(self, error: FrameError) -> None:
        """The peer's fault: what it asked for before is answered, and nothing behind."""
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
        """Our fault."""
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
        """Close once what is ready has been sent."""
        if not self._closed:
            self._write()
            self._closed = True
            if self._transport is not None:
                self._transport.close()
