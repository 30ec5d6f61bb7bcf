"""Plays the same histories on Apache Kafka and on Barnabas, and compares every field of the answers.

python -m tests.differential [--seed N] [--runs N] [--area NAME ...] [--kafka-version VERSION]
    [--kafka HOST:PORT] [--record]

Apache Kafka 4.4.0 is the reference. With 4.3.1 the requests are of the versions that it has, and the rules
for the differences between the two (`OLDER_KAFKA`) apply as well.

A history follows from its area and its number; `--runs` numbers are played, from `--seed` on. The exit code
is 1 if there is a difference that `rules.py` does not allow.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Sequence

from tests.clients.java_build import REFERENCE_VERSION
from tests.differential.brokers import STORES, Peers, running
from tests.differential.compare import Comparison, Difference
from tests.differential.playing import AREAS, observe, unique_suffix
from tests.differential.recording import record, recorded_seeds
from tests.differential.stage import Observation
from tests.differential.versions import ADDED_BY_4_4

KAFKA_RELEASES = (REFERENCE_VERSION, "4.3.1")

_RUNS = 40
_AT_ONCE = 6
_SHOWN_CHARACTERS = 300


def main() -> int:
    options = _parse()
    with running(options.kafka, options.kafka_version) as peers:
        return asyncio.run(_run(peers, options))


async def _run(peers: Peers, options: argparse.Namespace) -> int:
    print(
        f"{'area':16}{'store':8}{'histories':>10}{'answers':>9}{'fields':>9}{'allowed':>9}{'real':>6}{'s':>6}"
    )
    comparisons: list[Comparison] = []
    for area in options.area:
        seeds = recorded_seeds(area) if options.record else range(options.seed, options.seed + options.runs)
        began = time.monotonic()
        by_store = await _compare(peers, area, seeds, options)
        seconds = round(time.monotonic() - began)
        for store, comparison in by_store.items():
            print(f"{area:16}{store:8}{len(seeds):>10}{comparison.summary()}{seconds:>6}", flush=True)
            comparisons.append(comparison)
    _print_rules(comparisons)
    return int(any(comparison.real for comparison in comparisons))


async def _compare(
    peers: Peers, area: str, seeds: Sequence[int], options: argparse.Namespace
) -> dict[str, Comparison]:
    room = asyncio.Semaphore(_AT_ONCE)
    is_older = options.kafka_version != REFERENCE_VERSION
    comparisons = {store: Comparison(is_older_kafka=is_older) for store in STORES}
    too_new = ADDED_BY_4_4 if is_older else None

    async def play(seed: int) -> list[list[Observation]]:
        unique = unique_suffix(area, seed, os.getpid())
        async with room:
            everywhere = [peers.kafka, *peers.ours.values()]
            return await asyncio.gather(
                *[observe(peer, area, seed, unique, too_new=too_new) for peer in everywhere]
            )

    played = await asyncio.gather(*map(play, seeds))
    for seed, (kafka, *ours) in zip(seeds, played, strict=True):
        for (store, comparison), observed in zip(comparisons.items(), ours, strict=True):
            for difference in comparison.add(kafka, observed):
                _show(f"{area} {seed} with {store}", difference, kafka)
    if options.record:
        record(area, {seed: kafka for seed, (kafka, *_) in zip(seeds, played, strict=True)})
    return comparisons


def _show(history: str, difference: Difference, kafka: Sequence[Observation]) -> None:
    step, path, expected, got, _ = difference
    asked = kafka[step] if step < len(kafka) else None
    api = f"{asked.api} v{asked.version}" if asked is not None else ""
    print(f"  {history}, step {step}: {api} {path}")
    print(f"    Kafka {str(expected)[:_SHOWN_CHARACTERS]}")
    print(f"    ours  {str(got)[:_SHOWN_CHARACTERS]}")
    if asked is not None:
        print(f"    asked {asked.asked[:_SHOWN_CHARACTERS]}")


def _print_rules(comparisons: Sequence[Comparison]) -> None:
    print("\nallowed differences that were used (docs/differences.md)")
    used = {name for comparison in comparisons for name in comparison.allowed}
    for name in sorted(used):
        print(f"  {sum(comparison.allowed[name] for comparison in comparisons):>7}  {name}")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.differential")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=_RUNS)
    parser.add_argument("--area", nargs="*", choices=AREAS, default=list(AREAS))
    parser.add_argument("--kafka-version", choices=KAFKA_RELEASES, default=REFERENCE_VERSION)
    parser.add_argument("--kafka", metavar="HOST:PORT", help="a running one, instead of a fresh one")
    parser.add_argument("--record", action="store_true", help="keep Kafka's answers for the tests")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
