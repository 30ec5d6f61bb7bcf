"""`make sim`: run seeds until one fails, and say which.

    python -m tests.simulation.run [--seed SEED] [--runs N] [--length MS] [--faults NAME,NAME...]

Without a seed each run has one by chance; with one, further runs count up from it. Exit code 1 and a report
on the first failure.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from secrets import randbelow

from barnabas.protocol.lean_import import import_kio_without_hypothesis
from tests.simulation.faults import FAULTS
from tests.simulation.simulation import Failure, Result, simulate

LONG_MS = 20_000
"""How long things happen in a run, unless another length is asked for."""

_RANDOM_SEEDS = 10**9
_RANDOM_RUNS = 100
_RUNS_PER_LINE = 10


class _Options(argparse.Namespace):
    seed: str
    runs: int | None
    length: int
    faults: str


def main() -> int:
    options = _parser().parse_args(namespace=_Options())
    fault_names = tuple(name for name in options.faults.split(",") if name)
    unknown = set(fault_names).difference(FAULTS)
    if unknown:
        print(f"There are no faults {sorted(unknown)}; there are {', '.join(FAULTS)}.", file=sys.stderr)
        return 2
    import_kio_without_hypothesis()
    runs = options.runs or (1 if options.seed else _RANDOM_RUNS)
    started, virtual_ms = time.perf_counter(), 0
    for count, seed in enumerate(_seeds(options.seed, runs), 1):
        try:
            result = simulate(seed, options.length, fault_names)
        except Failure as failure:
            print(failure)
            return 1
        virtual_ms += result.virtual_ms
        if count % _RUNS_PER_LINE == 0 or count == runs:
            _report(count, seed, result, virtual_ms, time.perf_counter() - started)
    return 0


def _report(count: int, seed: str, result: Result, virtual_ms: int, seconds: float) -> None:
    print(
        f"{count} runs, the last of seed {seed} with {result.event_count} steps and trace "
        f"{result.trace_hash}: {count / seconds:.1f} runs/s, {virtual_ms / 1000:.0f} s in {seconds:.0f} s",
        flush=True,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Simulate the broker from seeds, until a run fails.")
    parser.add_argument("--seed", default="", help="the first seed; by chance if there is none")
    parser.add_argument("--runs", type=int, help=f"how many; 1 with a seed, {_RANDOM_RUNS} without")
    parser.add_argument("--length", type=int, default=LONG_MS, metavar="MS", help="how long things go wrong")
    parser.add_argument("--faults", default=",".join(FAULTS), help=f"which may happen: {', '.join(FAULTS)}")
    return parser


def _seeds(first: str, runs: int) -> Iterator[str]:
    for number in range(runs):
        if not first:
            yield str(randbelow(_RANDOM_SEEDS))
        elif first.isdecimal():
            yield str(int(first) + number)
        else:
            yield f"{first}+{number}" if number else first


if __name__ == "__main__":
    sys.exit(main())
