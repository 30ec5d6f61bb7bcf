"""`python -m benchmarks.http_cost`: the cost of HTTP: the start, the memory, and a scrape each second.

- The start is the time to the first answered ApiVersions, and the processor time until a second later. On a
  machine that does other work, only the latter can be compared. Memory is resident memory after that second,
  and after ten scrapes. Medians of `ROUNDS` starts; with and without HTTP take turns.
- A scrape costs processor time of the broker's one loop. A data path that uses the loop completely loses this
  part of each second. Share groups with leaders in memory give the series. The figure needs no quiet machine.

The exit code is 1 if a target is missed.
"""

import argparse
import statistics
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Final, NamedTuple

from tests.clients.broker_process import reserved_port
from tests.clients.cluster import Cluster

from benchmarks.brokers.barnabas import Barnabas
from benchmarks.clients import fill, share_rate

ROUNDS: Final = 5
GROUPS: Final = 10
PARTITIONS: Final = 4
RECORDS: Final = 10_000
"""More than one poll returns."""
VALUE_BYTES: Final = 100
SCRAPES: Final = 10
MEASURED_SCRAPES: Final = 100
SETTLE_SECONDS: Final = 1.0

START_SECONDS_MAX: Final = 0.1
"""The most additional time of a start."""
MEBIBYTES_MAX: Final = 15
"""The most additional memory."""
SCRAPE_PERCENT_MAX: Final = 2.0
"""The most processor time of a scrape each second."""

_MEBIBYTE: Final = 1 << 20


class Start(NamedTuple):
    """One start."""

    seconds: float
    cpu_seconds: float
    idle_mib: float
    scraped_mib: float


def main() -> int:
    options = _parse()
    with tempfile.TemporaryDirectory(prefix="http-cost-") as directory:
        met = [
            _compare_starts(Path(directory), options.rounds),
            _measure_scrape(Path(directory), options.groups),
        ]
    return 0 if all(met) else 1


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.http_cost", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--groups", type=int, default=GROUPS, help="share groups of the scraped broker")
    return parser.parse_args()


def _compare_starts(directory: Path, rounds: int) -> bool:
    plain: list[Start] = []
    with_http: list[Start] = []
    for number in range(rounds + 1):
        starts = (
            _start(directory / f"plain-{number}", None),
            _start(directory / f"http-{number}", reserved_port()),
        )
        if number:  # the first round fills the caches
            plain.append(starts[0])
            with_http.append(starts[1])
    without, with_it = _medians(plain), _medians(with_http)
    print("              start s  CPU s  idle MiB  MiB after scrapes")
    print(f"without HTTP  {without.seconds:7.3f}  {without.cpu_seconds:5.2f}  {without.idle_mib:8.1f}")
    print(
        f"with HTTP     {with_it.seconds:7.3f}  {with_it.cpu_seconds:5.2f}  {with_it.idle_mib:8.1f}  "
        f"{with_it.scraped_mib:17.1f}",
        flush=True,
    )
    return (
        with_it.cpu_seconds - without.cpu_seconds <= START_SECONDS_MAX
        and with_it.scraped_mib - without.idle_mib <= MEBIBYTES_MAX
    )


def _medians(starts: list[Start]) -> Start:
    return Start(*(statistics.median(values) for values in zip(*starts, strict=True)))


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
        cpu_seconds = broker.cpu_seconds()
        if http_port is not None:
            for _ in range(SCRAPES):
                _scrape(http_port)
        return Start(seconds, cpu_seconds, idle, broker.resident_bytes() / _MEBIBYTE)
    finally:
        broker.stop()


def _measure_scrape(directory: Path, group_count: int) -> bool:
    port = reserved_port()
    place = directory / "scraped"
    place.mkdir()
    broker = Barnabas(place, {"http.listener": str(port)})
    broker.start()
    try:
        _make_groups(broker, group_count)
        series_count = _scrape(port).count(b"\n") - _scrape(port).count(b"\n#")
        before = broker.cpu_seconds()
        for _ in range(MEASURED_SCRAPES):
            _scrape(port)
        milliseconds = (broker.cpu_seconds() - before) / MEASURED_SCRAPES * 1_000
    finally:
        broker.stop()
    percent = milliseconds / 10
    print(
        f"a scrape of {series_count:,} series of {group_count} share groups with {PARTITIONS} partitions: ",
        end="",
    )
    print(f"{milliseconds:.1f} ms of the loop, {percent:.1f} % with one scrape per second", flush=True)
    return percent <= SCRAPE_PERCENT_MAX


def _make_groups(broker: Barnabas, count: int) -> None:
    """Groups that have just read a topic, so that the leaders of their partitions are in memory."""
    cluster = Cluster(broker.address)
    topic = cluster.topic(PARTITIONS)
    fill(broker.address, topic, RECORDS, VALUE_BYTES)
    for _ in range(count):
        share_rate(broker.address, topic, cluster.group(), RECORDS, "implicit")


def _scrape(port: int) -> bytes:
    accept = {"Accept": "application/openmetrics-text;version=1.0.0"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers=accept)
    with urllib.request.urlopen(request, timeout=10) as answer:
        body: bytes = answer.read()
    return body


if __name__ == "__main__":
    sys.exit(main())
