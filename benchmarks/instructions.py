"""`python -m benchmarks.instructions`: the instructions of the broker for one request, counted by callgrind.

Rates and processor times on a shared machine differ by a fifth from run to run, counts by some hundredths.
They leave out the system's part of each call, such as copying bytes into the page cache. Needs Valgrind.
"""

import argparse
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from tests.clients.cluster import Cluster
from tests.clients.java_build import PROJECT, require
from tests.clients.polling import eventually
from tests.clients.raw_frames import RawConnection, produce_error, produce_request

from barnabas.protocol.records import Record, encode_records
from benchmarks.brokers.barnabas import Barnabas
from benchmarks.brokers.process import end_orderly_on_sigterm
from benchmarks.raw_client import RawShareConsumer

TIMEOUT_SECONDS: Final = 600.0
WARM_UP_STEPS: Final = 5
IDLE_SECONDS: Final = 2.0
IDLE_INSTRUCTIONS_MAX: Final = 2_000_000
"""In that time. A new broker has more: it loads modules that it may need later, while no request comes."""
ACQUIRED: Final = 500
_TOTALS: Final = re.compile(r"^totals: (\d+)", re.MULTILINE)

Step = Callable[[], object]


class Work(NamedTuple):
    """A kind of request: `begin` prepares the broker for a number of steps, and returns one step."""

    name: str
    begin: Callable[[Barnabas, int], Step]
    steps: int = 200
    requests_per_step: int = 1
    flush: str = "interval"


class CountedBarnabas(Barnabas):
    """Barnabas under callgrind, which makes it some fifty times slower."""

    def command(self) -> Sequence[str]:
        program, *arguments = super().command()
        count = (require("valgrind"), "--tool=callgrind", f"--callgrind-out-file={self._counts}")
        return [*count, str(Path(program).with_name("python")), program, *arguments]

    def instructions_of(self, step: Step, times: int) -> int:
        """The instructions of all threads while `step` runs this number of times."""
        self._control("--zero")
        for _ in range(times):
            step()
        known = set(self.directory.glob("counts*"))
        self._control("--dump")
        dump = eventually(lambda: self._complete_dump(known), awaited="the dump of callgrind")
        return int(dump)

    def is_idle(self) -> bool:
        """Whether it does next to nothing while no request comes."""
        return self.instructions_of(lambda: time.sleep(IDLE_SECONDS), 1) <= IDLE_INSTRUCTIONS_MAX

    @property
    def _counts(self) -> Path:
        return self.directory / "counts"

    def _complete_dump(self, known: set[Path]) -> str:
        for path in set(self.directory.glob("counts*")) - known:
            if found := _TOTALS.search(path.read_text()):
                return found[1]
        return ""

    def _control(self, command: str) -> None:
        control = [require("callgrind_control"), command, str(self.pid)]
        subprocess.run(control, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _produce(record_count: int, value_bytes: int) -> Callable[[Barnabas, int], Step]:
    def begin(broker: Barnabas, _: int) -> Step:
        request = _produce_request(Cluster(broker.address).topic(), record_count, value_bytes)
        connection = RawConnection(broker.address, TIMEOUT_SECONDS)
        return lambda: _exchange(connection, request)

    return begin


def _produce_request(topic: str, record_count: int, value_bytes: int) -> bytes:
    now_ms = time.time_ns() // 1_000_000
    records = [Record(number, now_ms, None, bytes(value_bytes)) for number in range(record_count)]
    return produce_request(topic, encode_records(records), version=7)


def _exchange(connection: RawConnection, request: bytes) -> None:
    error = produce_error(connection.exchange(request))
    if error:
        raise RuntimeError(f"the batch was refused with error {error}")


def _share_consumer(broker: Barnabas, batch_count: int, batch_records: int) -> RawShareConsumer:
    """A member of a new group on a topic with these batches."""
    cluster = Cluster(broker.address)
    topic, group = cluster.topic(), cluster.group()
    request = _produce_request(topic, batch_records, 100)
    with RawConnection(broker.address, TIMEOUT_SECONDS) as connection:
        for _ in range(batch_count):
            _exchange(connection, request)
    consumer = RawShareConsumer(broker.address, group, topic, cluster.topic_id(topic))
    consumer.join()
    return consumer


def _fetch_one(broker: Barnabas, steps: int) -> Step:
    consumer = _share_consumer(broker, steps, 1)
    taken: list[int] = []

    def step() -> None:
        consumer.send_fetch(1, accepted=taken)
        taken[:] = consumer.receive_fetch()
        assert len(taken) == 1

    return step


def _accept(accept: Callable[[RawShareConsumer, list[int]], None]) -> Callable[[Barnabas, int], Step]:
    def begin(broker: Barnabas, steps: int) -> Step:
        consumer = _share_consumer(broker, steps, ACQUIRED)

        def step() -> None:
            taken = consumer.acquire(ACQUIRED)
            assert len(taken) == ACQUIRED
            accept(consumer, taken)

        return step

    return begin


WORKS: Final = (
    Work("a produced batch of 1 record of 100 B", _produce(1, 100)),
    Work("a produced batch of 100 records of 100 B", _produce(100, 100)),
    Work("a produced batch of 900 records of 1 KB", _produce(900, 1_000)),
    Work("a share fetch of 1 record that accepts the record before", _fetch_one),
    Work(
        "a share fetch of 500 records, and an acceptance of all",
        _accept(RawShareConsumer.accept_together),
        60,
    ),
    Work("an acceptance of 1 record, among others", _accept(RawShareConsumer.accept_singly), 6, ACQUIRED),
    Work(
        "the same with log.flush=always", _accept(RawShareConsumer.accept_singly), 6, ACQUIRED, flush="always"
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions", description=__doc__)
    parser.add_argument("--baseline", type=Path, help="also count another working tree of Barnabas")
    parser.add_argument("--compiled", action="store_true", help="also count what `make compiled` has built")
    options = parser.parse_args()
    end_orderly_on_sigterm()
    forms = {"barnabas": partial(CountedBarnabas, project=PROJECT)}
    if options.compiled:
        forms["compiled"] = partial(CountedBarnabas, project=PROJECT, compiled=True)
    if options.baseline is not None:
        forms["baseline"] = partial(CountedBarnabas, project=options.baseline.resolve())
    print("thousands of instructions".ljust(58), *(name.rjust(9) for name in forms))
    counted = {name: _count_all(form) for name, form in forms.items()}
    for work in WORKS:
        counts = [counted[name][work.name] for name in forms]
        ratios = (f"{counts[0] / count:9.3f}" for count in counts[1:])
        print(work.name.ljust(58), *(f"{count / 1000:9,.0f}" for count in counts), *ratios)


def _count_all(form: Callable[..., CountedBarnabas]) -> Mapping[str, float]:
    """Instructions for one request of each kind. Each setting has a broker of its own."""
    counted: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="instructions-") as directory:
        for flush in dict.fromkeys(work.flush for work in WORKS):
            broker = form(Path(directory) / flush, {"log.flush": flush})
            broker.start()
            try:
                counted |= {work.name: _count(broker, work) for work in WORKS if work.flush == flush}
            finally:
                broker.kill()
    return counted


def _count(broker: CountedBarnabas, work: Work) -> float:
    step = work.begin(broker, work.steps + WARM_UP_STEPS)
    for _ in range(WARM_UP_STEPS):
        step()
    eventually(broker.is_idle, awaited="the broker has nothing to load", deadline_seconds=TIMEOUT_SECONDS)
    return broker.instructions_of(step, work.steps) / work.steps / work.requests_per_step


if __name__ == "__main__":
    main()
