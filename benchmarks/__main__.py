"""`python -m benchmarks`: measure Barnabas beside other brokers, and print ratios against the targets."""

import argparse
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from confluent_kafka import KafkaException
from tests.clients.share_probe import JavaError

from benchmarks.brokers.apache_kafka import ApacheKafka
from benchmarks.brokers.barnabas import Barnabas
from benchmarks.brokers.ceiling import Ceiling
from benchmarks.brokers.kfake import Kfake
from benchmarks.brokers.process import Broker, Peer, end_orderly_on_sigterm
from benchmarks.go_programs import go_is_installed
from benchmarks.measurement import FULL, QUICK, SUBJECT, Results, Scale, Workload, all_met
from benchmarks.report import table, write_json
from benchmarks.workloads import WORKLOADS

Outcome = TypeVar("Outcome")

BASELINE = "baseline"
COMPILED = "compiled"
"""The names of other forms of Barnabas."""
LOCAL_BROKERS: Mapping[str, Callable[[Path], Broker]] = {
    SUBJECT: Barnabas,
    COMPILED: partial(Barnabas, compiled=True),
    "kafka": ApacheKafka,
    "kfake": Kfake,
    "ceiling": Ceiling,
}


def main() -> int:
    """Run the benchmarks; exit code 1 with --strict if a target was missed."""
    options = parse()
    end_orderly_on_sigterm()
    scale = QUICK if options.quick else FULL
    scale = replace(scale, repeats=options.repeats or scale.repeats)
    results: dict[str, Results] = {}
    with running_brokers(options.brokers, options.peer, options.baseline) as brokers:
        for name in options.only:
            results[name] = measure(WORKLOADS[name], brokers, scale)
            print(table(results[name], list(brokers)), flush=True)
    print(f"written to {write_json(results)}")
    return 1 if options.strict and not all_met(results) else 0


def parse() -> argparse.Namespace:
    """The command line's options."""
    default = [name for name in ("barnabas", "kafka", "kfake") if name != "kfake" or go_is_installed()]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", type=_names(WORKLOADS), default=list(WORKLOADS), metavar="NAME,...")
    parser.add_argument("--brokers", type=_names(LOCAL_BROKERS), default=default, metavar="NAME,...")
    parser.add_argument("--peer", metavar="HOST:PORT", help="also measure a broker that runs at this address")
    parser.add_argument(
        "--baseline", type=Path, metavar="DIR", help="also measure the Barnabas of another working tree"
    )
    parser.add_argument("--quick", action="store_true", help="small runs, once each")
    parser.add_argument("--repeats", type=int, metavar="N", help="the runs of each broker, which take turns")
    parser.add_argument("--strict", action="store_true", help="fail if a target is missed")
    return parser.parse_args()


def _names(known: Mapping[str, object]) -> "type[list[str]]":
    class Names(list[str]):
        """Known names from a comma-separated list."""

        def __init__(self, text: str) -> None:
            super().__init__(text.split(","))
            if unknown := [name for name in self if name not in known]:
                raise argparse.ArgumentTypeError(f"{unknown[0]} is unknown; the names are {', '.join(known)}")

    return Names


@contextmanager
def running_brokers(
    names: Sequence[str], peer: str | None, baseline: Path | None
) -> Generator[dict[str, Broker]]:
    """Start the brokers with empty data directories, and stop them at the end."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="benchmarks-")))
        brokers: dict[str, Broker] = {name: LOCAL_BROKERS[name](directory / name) for name in names}
        if baseline is not None:
            brokers[BASELINE] = Barnabas(directory / BASELINE, project=baseline.resolve())
        if peer is not None:
            brokers["peer"] = Peer(peer)
        for broker in brokers.values():
            broker.start()
            stack.callback(broker.stop)
        yield brokers


def measure(kind: type[Workload], brokers: Mapping[str, Broker], scale: Scale) -> Results:
    """Run one workload on each broker in turn, repeatedly; a broker that fails is left out afterwards.

    Each round begins with another broker, because the writes of one broker keep the disk busy during the next
    measurement.
    """
    results = Results(kind.name, kind.targets)
    with ExitStack() as stack:
        workloads: dict[str, Workload] = {}
        for name, broker in brokers.items():
            kind_name = SUBJECT if name in (BASELINE, COMPILED) else name
            if kind.brokers is None or kind_name in kind.brokers:
                workloads[name] = kind(broker, scale)
                stack.callback(workloads[name].finish)
                _attempt(results, name, workloads[name].prepare)
        for number in range(scale.repeats + kind.warm_up):
            _round(results, workloads, number, kept=number >= kind.warm_up)
    return results


def _round(results: Results, workloads: Mapping[str, Workload], number: int, *, kept: bool) -> None:
    names = [name for name in workloads if name not in results.failures]
    first = number % max(len(names), 1)
    for name in names[first:] + names[:first]:
        print(f"{results.workload}: {name}, run {number + 1}", file=sys.stderr, flush=True)
        metrics = _attempt(results, name, workloads[name].measure)
        if metrics is not None and kept:
            results.runs.setdefault(name, []).append(metrics)


def _attempt(results: Results, broker: str, work: Callable[[], Outcome]) -> Outcome | None:
    try:
        return work()
    except (RuntimeError, AssertionError, OSError, EOFError, KafkaException, JavaError) as failure:
        results.failures[broker] = f"{type(failure).__name__}: {failure}"
        return None


if __name__ == "__main__":
    sys.exit(main())
