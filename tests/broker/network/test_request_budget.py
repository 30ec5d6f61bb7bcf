"""The budget of all connections' requests: the connections that are read at the limit, and those that are cut
off.
"""

from random import Random

from barnabas.broker.network.request_budget import (
    LOOK_SECONDS,
    PROGRESS_SECONDS,
    RequestBudget,
    RequestShare,
)
from barnabas.protocol.frame import GROWTH_BYTES_MAX
from tests.broker.network.connection_bench import Bench, quick
from tests.broker.network.edge_fakes import (
    WAITING_API,
    ManualClock,
    ManualTimers,
    body,
    request_frame,
    settle,
)

MIB = 1024 * 1024
LIMIT = 32 * MIB
REQUEST = 20 * MIB


class Client:
    """Sends one request after the other, in pieces, as long as its connection is read."""

    def __init__(self, budget: RequestBudget, request_bytes: int = REQUEST) -> None:
        self.share: RequestShare = budget.open(self)
        self.request_bytes = request_bytes
        self.reads = True
        self.is_held_up = False
        self.unread = 0
        self.reasons: list[str] = []
        self.whole_bytes = 0

    def unread_bytes(self) -> int:
        return self.unread

    def room_changed(self) -> None:
        self.reads = self.share.may_read()

    def cut_off(self, reason: str) -> None:
        self.reasons.append(reason)
        self.share.note(0, 0, 0)

    def send(self, size_bytes: int = GROWTH_BYTES_MAX) -> None:
        """One read from the socket."""
        assert self.reads
        arrived_bytes = self.share.partial_bytes + size_bytes
        if arrived_bytes >= self.request_bytes:
            self.whole_bytes += self.request_bytes
            self.share.note(0, 0, self.whole_bytes)
        else:
            self.share.note(arrived_bytes, self.request_bytes, self.whole_bytes)
        self.reads = self.share.may_read()

    def answer(self) -> None:
        """Its requests are answered."""
        self.whole_bytes = 0
        self.share.note(self.share.partial_bytes, self.request_bytes, 0)


class Scene:
    def __init__(self, client_count: int, limit: int | None = LIMIT) -> None:
        self.timers = ManualTimers(ManualClock())
        self.budget = RequestBudget(limit, self.timers.call_later)
        self.clients = [Client(self.budget) for _ in range(client_count)]

    @property
    def held_bytes(self) -> int:
        return self.budget.partial_bytes + self.budget.whole_bytes

    def waiting(self) -> list[Client]:
        """The clients that are not read, in the order of their creation."""
        return [client for client in self.clients if not client.reads]

    def look(self, times: int) -> None:
        self.timers.advance(round(times * LOOK_SECONDS * 1000))

    def fill(self) -> None:
        """The clients send in turns until at most one is read."""
        while len(readers := [client for client in self.clients if client.reads]) > 1:
            for client in readers:
                if client.reads:
                    client.send()


def test_all_half_received_requests_but_one_stop_at_the_limit() -> None:
    scene = Scene(8)
    scene.fill()
    assert LIMIT <= scene.held_bytes <= LIMIT + GROWTH_BYTES_MAX
    assert sum(client.reads for client in scene.clients) == 1


def test_the_admitted_one_completes_its_request_and_the_next_one_follows() -> None:
    scene = Scene(8)
    finished: list[Client] = []
    for _ in scene.clients:
        scene.fill()
        (reader,) = (client for client in scene.clients if client.reads)
        while not reader.whole_bytes:
            reader.send()
            assert scene.held_bytes < 2 * LIMIT
        reader.reads = False
        reader.answer()
        finished.append(reader)
        scene.clients = [client for client in scene.clients if client not in finished]
        if not scene.clients:
            break
    assert len(finished) == 8
    assert scene.held_bytes == 0


def test_small_requests_are_read_while_half_received_ones_fill_the_room() -> None:
    scene = Scene(8)
    scene.fill()
    small = Client(scene.budget, request_bytes=100)
    small.send(100)
    assert small.reads
    assert small.whole_bytes == 100


def test_whole_requests_at_the_limit_stop_every_client_until_one_is_answered() -> None:
    scene = Scene(0)
    busy = [Client(scene.budget, request_bytes=LIMIT // 2) for _ in range(2)]
    for client in busy:
        while not client.whole_bytes:
            client.send()
    late = Client(scene.budget, request_bytes=100)
    assert not late.share.may_read()
    assert late.share.waits
    late.reads = False
    busy[0].answer()
    assert late.reads
    assert not late.share.waits


def test_requests_without_progress_are_cut_off_together_and_make_room() -> None:
    scene = Scene(20)
    scene.fill()
    waiting = scene.waiting()[-1]
    waiting.unread = REQUEST
    scene.look(1 + round(PROGRESS_SECONDS / LOOK_SECONDS))
    for client in scene.clients:
        assert len(client.reasons) == (client is not waiting)
    assert "queued.max.request.bytes" in scene.clients[0].reasons[0]
    assert waiting.reads


def test_one_with_unread_bytes_takes_the_place_of_one_without_progress() -> None:
    scene = Scene(20)
    scene.fill()
    healthy = scene.waiting()[-1]
    healthy.unread = REQUEST
    scene.look(2)
    assert healthy.reads
    while not healthy.whole_bytes:
        healthy.send()
    assert not any(client.reasons for client in scene.clients)


def test_the_one_with_the_most_unread_bytes_is_admitted_first() -> None:
    scene = Scene(8)
    scene.fill()
    scene.waiting()[0].unread, scene.waiting()[3].unread = 1, REQUEST
    expected = scene.waiting()[3]
    scene.look(2)
    assert [client for client in scene.clients if client.reads] == [expected]


def test_one_with_progress_keeps_its_place_until_it_is_cut_off() -> None:
    scene = Scene(8)
    scene.fill()
    (admitted,) = (client for client in scene.clients if client.reads)
    admitted.send()
    scene.waiting()[0].unread = REQUEST
    scene.look(round(PROGRESS_SECONDS / LOOK_SECONDS) // 2)
    assert admitted.reads
    scene.look(round(PROGRESS_SECONDS / LOOK_SECONDS))
    assert len(admitted.reasons) == 1


def test_a_client_that_the_broker_does_not_read_is_not_cut_off_and_gives_its_place() -> None:
    scene = Scene(8)
    scene.fill()
    (admitted,) = (client for client in scene.clients if client.reads)
    admitted.is_held_up = True
    other = scene.waiting()[0]
    other.unread = REQUEST
    scene.look(1)
    assert other.reads
    scene.look(10 * round(PROGRESS_SECONDS / LOOK_SECONDS))
    assert admitted.reasons == []


def test_unused_room_is_given_to_others() -> None:
    scene = Scene(8)
    scene.fill()
    scene.clients[0].cut_off("it is gone")
    for client in scene.clients:  # the clients that may continue now send nothing
        client.unread = 0
    late = scene.waiting()[-1]
    late.unread = REQUEST
    scene.look(1)
    assert late.reads


def test_a_slow_request_with_progress_is_not_cut_off() -> None:
    scene = Scene(8)
    scene.fill()
    (slow,) = (client for client in scene.clients if client.reads)
    while not slow.whole_bytes:
        slow.send(GROWTH_BYTES_MAX)
        scene.look(round(PROGRESS_SECONDS / LOOK_SECONDS) - 1)
    assert slow.reasons == []


def test_no_check_runs_while_no_connection_waits() -> None:
    scene = Scene(2, limit=3 * REQUEST)
    for client in scene.clients:
        client.send()
    assert scene.timers.armed_ms == []


def test_without_a_limit_every_client_is_read() -> None:
    scene = Scene(8, limit=None)
    for _ in range(19):
        for client in scene.clients:
            client.send()
    assert all(client.reads for client in scene.clients)


def test_in_any_order_one_client_is_read_and_twice_the_limit_is_not_reached() -> None:
    for seed in range(20):
        random = Random(seed)
        scene = Scene(12)
        answered = 0
        for _ in range(3_000):
            readers = [client for client in scene.clients if client.reads]
            busy = [client for client in scene.clients if client.whole_bytes]
            assert readers or busy, seed
            if readers and (not busy or random.random() < 0.9):
                random.choice(readers).send(random.randrange(1, GROWTH_BYTES_MAX))
            else:
                random.choice(busy).answer()
                answered += 1
            assert scene.held_bytes < 2 * LIMIT, seed
        assert answered > 20


async def test_a_connection_counts_received_bytes_then_the_request_and_nothing_after_the_answer() -> None:
    bench = Bench(request_bytes_max=LIMIT)
    large = request_frame(WAITING_API, 1, body=bytes(100_000))
    bench.receive(large[:70_000])
    assert 70_000 <= bench.request_budget.partial_bytes <= 2 * 70_000
    bench.receive(large[70_000:])
    assert (bench.request_budget.partial_bytes, bench.request_budget.whole_bytes) == (0, len(large) - 4)
    bench.waits[0].set_result(body("done"))
    await settle()
    assert bench.request_budget.whole_bytes == 0


async def test_a_lost_connection_holds_only_its_running_requests() -> None:
    bench = Bench(request_bytes_max=LIMIT)
    large = request_frame(WAITING_API, 1, body=bytes(100_000))
    bench.receive(large, large[:70_000])
    bench.connection.connection_lost(None)
    assert (bench.request_budget.partial_bytes, bench.request_budget.whole_bytes) == (0, len(large) - 4)
    bench.waits[0].set_result(body("done"))
    await settle()
    assert bench.request_budget.whole_bytes == 0


async def test_a_connection_stops_reading_at_the_limit_and_continues_when_there_is_room() -> None:
    bench = Bench(request_bytes_max=LIMIT)
    other = bench.request_budget.open(Client(bench.request_budget))
    other.note(0, 0, LIMIT)
    bench.receive(quick(1))
    assert not bench.transport.is_reading()
    assert bench.connection.waiting, "it is not idle"
    other.note(0, 0, 0)
    assert bench.transport.is_reading()
