"""`python -m benchmarks.http_cost`: the cost of HTTP: the start, the memory, and a scrape of /metrics each second.

- The start is the time to the first answered ApiVersions. Memory is resident memory a second later, and after
  ten scrapes. Medians of `ROUNDS` starts; with and without HTTP take turns.
- The data path is a share group that accepts records which a producer has written. It runs in turns with and
  without a scraper. The figure is the processor time of the broker for the same records, because it varies less
  than the throughput: on a machine that does nothing else, throughput changes by the same factor.

The exit code is 1 if a target is missed.
"""

import argparse
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.clients.broker_process import free_port
from tests.clients.cluster import Cluster

from benchmarks.brokers.barnabas import Barnabas
from benchmarks.clients import fill, share_rate

ROUNDS: Final = 5
RECORDS: Final = 200_000
VALUE_BYTES: Final = 100
SCRAPES: Final = 10
SETTLE_SECONDS: Final = 1.0

START_SECONDS_MAX: Final = 0.1
"""The most additional time of a start."""
MEBIBYTES_MAX: Final = 15
"""The most additional memory."""
SCRAPE_PERCENT_MAX: Final = 2.0
"""The most additional processor time by a scrape each second."""

_MEBIBYTE: Final = 1 << 20


class Start(NamedTuple):
    """One start."""

    seconds: float
    idle_mib: float
    scraped_mib: float | None


def main() -> int:
    options = _parse()
    with tempfile.TemporaryDirectory(prefix="http-cost-") as directory:
        met = [
            _compare_starts(Path(directory), options.rounds),
            _compare_scrapes(Path(directory), options.rounds, options.records),
        ]
    return 0 if all(met) else 1


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.http_cost", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--records", type=int, default=RECORDS, help="records of each round")
    return parser.parse_args()


def _compare_starts(directory: Path, rounds: int) -> bool:
    plain: list[Start] = []
    with_http: list[Start] = []
    for number in range(rounds + 1):
        starts = (
            _start(directory / f"plain-{number}", None),
            _start(directory / f"http-{number}", free_port()),
        )
        if number:  # the first round fills the caches
            plain.append(starts[0])
            with_http.append(starts[1])
    seconds = [statistics.median(one.seconds for one in starts) for starts in (plain, with_http)]
    idle = [statistics.median(one.idle_mib for one in starts) for starts in (plain, with_http)]
    scraped = statistics.median(one.scraped_mib or 0 for one in with_http)
    print("                 start s  idle MiB  MiB after scrapes")
    print(f"without HTTP     {seconds[0]:7.3f}  {idle[0]:8.1f}")
    print(f"with HTTP        {seconds[1]:7.3f}  {idle[1]:8.1f}  {scraped:17.1f}", flush=True)
    return seconds[1] - seconds[0] <= START_SECONDS_MAX and scraped - idle[0] <= MEBIBYTES_MAX


def _start(directory: Path, http_port: int | None) -> Start:
    directory.mkdir()
    broker = Barnabas(directory, {} if http_port is None else {"http.listener": str(http_port)})
    begin = time.perf_counter()
    broker.launch()
    broker.await_answer()
    seconds = time.perf_counter() - begin
    try:
        time.sleep(SETTLE_SECONDS)
        idle = broker.resident_bytes() / _MEBIBYTE
        if http_port is None:
            return Start(seconds, idle, None)
        for _ in range(SCRAPES):
            _scrape(http_port)
        return Start(seconds, idle, broker.resident_bytes() / _MEBIBYTE)
    finally:
        broker.stop()


def _compare_scrapes(directory: Path, rounds: int, records: int) -> bool:
    port = free_port()
    place = directory / "scraped"
    place.mkdir()
    broker = Barnabas(place, {"http.listener": str(port)})
    broker.start()
    alone: list[float] = []
    scraped: list[float] = []
    try:
        for number in range(rounds + 1):
            cpu_seconds = _work(broker, records)
            with _scraping(port):
                scraped_cpu_seconds = _work(broker, records)
            if number:
                alone.append(cpu_seconds)
                scraped.append(scraped_cpu_seconds)
    finally:
        broker.stop()
    percent = 100 * (statistics.median(scraped) / statistics.median(alone) - 1)
    print(f"CPU s for {records:,} records: {statistics.median(alone):.2f} without a scraper, ", end="")
    print(f"{statistics.median(scraped):.2f} with one scrape per second: {percent:+.1f} %", flush=True)
    return percent <= SCRAPE_PERCENT_MAX


def _work(broker: Barnabas, records: int) -> float:
    """The processor time of the broker while records are produced, consumed and accepted."""
    cluster = Cluster(broker.address)
    topic, group = cluster.topic(), cluster.group()
    before = broker.cpu_seconds()
    fill(broker.address, topic, records, VALUE_BYTES, linger_ms=5)
    share_rate(broker.address, topic, group, records, "implicit")
    return broker.cpu_seconds() - before


@contextmanager
def _scraping(port: int) -> Generator[None]:
    ended = threading.Event()

    def scrape() -> None:
        while not ended.wait(1.0):
            _scrape(port)

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _scrape(port: int) -> None:
    accept = {"Accept": "application/openmetrics-text;version=1.0.0"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers=accept)
    with urllib.request.urlopen(request, timeout=10) as answer:
        answer.read()


if __name__ == "__main__":
    sys.exit(main())
