"""`make sim`: run seeds on all cores until one fails, and report it.

    python -m tests.simulation.run [--seed SEED] [--runs N] [--minutes M] [--keep-going]
        [--length MS] [--faults NAME,NAME...] [--processes N]

Without `--seed` each run has a fresh random seed; with it, the seeds count up from it. Every seed is printed
when its run is over. The program ends after `--runs` runs or after `--minutes`, if nothing fails before. With
`--keep-going` it goes on after a failure, and repeats the commands of all failures at the end.

Exit code 0 if no run failed, 1 if one failed, 2 for a wrong option, 130 after Ctrl-C without a failure.
"""

from __future__ import annotations

import argparse
import faulthandler
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import count
from secrets import randbelow
from typing import NamedTuple

from barnabas.protocol.lean_import import import_kio_without_hypothesis
from tests.simulation.faults import FAULTS
from tests.simulation.simulation import Failure, Result, command_for, simulate

LONG_MS = 20_000
"""The default length of a run: faults happen for so long."""

_RANDOM_SEEDS = 10**9
_RANDOM_RUNS = 100
_STUCK_SECONDS_MIN = 600
"""A run that takes longer is stuck. Its process prints where, and ends."""
_STUCK_SECONDS_PER_VIRTUAL_SECOND = 30
_CORES = len(os.sched_getaffinity(0))
_EXIT_FAILED = 1
_EXIT_USAGE = 2
_EXIT_INTERRUPTED = 130


class _Options(argparse.Namespace):
    seed: str
    runs: int | None
    minutes: float | None
    keep_going: bool
    length: int
    faults: str
    processes: int

    @property
    def fault_names(self) -> tuple[str, ...]:
        return tuple(name for name in self.faults.split(",") if name)

    @property
    def run_count_max(self) -> int | None:
        """None if only the time is limited."""
        if self.runs is not None or self.minutes is not None:
            return self.runs
        return 1 if self.seed else _RANDOM_RUNS


class _Outcome(NamedTuple):
    """One run: its result, or the report of its failure. Several runs if a process died during one of
    them.
    """

    seeds: Sequence[str]
    result: Result | None = None
    report: str = ""


class _Summary:
    """Counts the runs and prints each of them."""

    def __init__(self, options: _Options) -> None:
        self.failed_seeds: list[str] = []
        self._options = options
        self._started = time.perf_counter()
        self._run_count = 0
        self._virtual_ms = 0

    def add(self, outcome: _Outcome) -> None:
        self._run_count += len(outcome.seeds)
        if outcome.result is None:
            self.failed_seeds += outcome.seeds
            print(outcome.report, flush=True)
            return
        trace_hash, event_count, virtual_ms = outcome.result
        self._virtual_ms += virtual_ms
        print(f"seed {outcome.seeds[0]}: {event_count} steps, trace {trace_hash}", flush=True)

    def finish(self) -> None:
        seconds = time.perf_counter() - self._started
        print(
            f"{self._run_count} runs, {len(self.failed_seeds)} failed: {self._run_count / seconds:.1f} "
            f"runs/s, {self._virtual_ms / 1000:.0f} s simulated in {seconds:.0f} s"
        )
        for seed in self.failed_seeds:
            print(command_for(seed, self._options.length, self._options.fault_names))


def main() -> int:
    options = _parser().parse_args(namespace=_Options())
    unknown = set(options.fault_names).difference(FAULTS)
    if unknown:
        print(f"Unknown faults: {', '.join(sorted(unknown))}. Known: {', '.join(FAULTS)}.", file=sys.stderr)
        return _EXIT_USAGE
    summary = _Summary(options)
    interrupted = False
    try:
        for outcome in _outcomes(options):
            summary.add(outcome)
            if summary.failed_seeds and not options.keep_going:
                break
    except KeyboardInterrupt:
        interrupted = True
    summary.finish()
    if summary.failed_seeds:
        return _EXIT_FAILED
    return _EXIT_INTERRUPTED if interrupted else 0


def _outcomes(options: _Options) -> Iterator[_Outcome]:
    seeds = _seeds(options)
    process_count = min(options.processes, options.run_count_max or options.processes)
    if process_count > 1:
        return _in_processes(seeds, options, process_count)
    _prepare()
    return (_outcome(seed, options.length, options.fault_names) for seed in seeds)


def _in_processes(seeds: Iterator[str], options: _Options, process_count: int) -> Iterator[_Outcome]:
    """Outcomes in the order in which the runs end; as many runs at a time as there are processes."""
    context = multiprocessing.get_context("spawn")
    running: dict[Future[_Outcome], str] = {}
    with ProcessPoolExecutor(process_count, mp_context=context, initializer=_prepare_process) as pool:
        while True:
            while len(running) < process_count and (seed := next(seeds, None)) is not None:
                running[pool.submit(_outcome, seed, options.length, options.fault_names)] = seed
            if not running:
                return
            ended, _ = wait(running, return_when=FIRST_COMPLETED)
            try:
                outcomes = [future.result() for future in ended]
            except BrokenProcessPool:
                break
            for future in ended:
                del running[future]
            yield from outcomes
    under_way = list(running.values())
    report = f"a process died or was stuck in one of these runs: seed {', seed '.join(under_way)}"
    yield _Outcome(under_way, report=report)
    yield from _in_processes(seeds, options, process_count)


def _prepare_process() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the first process, which lets runs finish
    _prepare()


def _prepare() -> None:
    import_kio_without_hypothesis()


def _outcome(seed: str, length_ms: int, fault_names: tuple[str, ...]) -> _Outcome:
    stuck_seconds = max(_STUCK_SECONDS_MIN, _STUCK_SECONDS_PER_VIRTUAL_SECOND * length_ms // 1000)
    faulthandler.dump_traceback_later(stuck_seconds, exit=True)
    try:
        return _Outcome([seed], simulate(seed, length_ms, fault_names))
    except Failure as failure:
        return _Outcome([seed], report=str(failure))
    finally:
        faulthandler.cancel_dump_traceback_later()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Simulate the broker from seeds, until a run fails.")
    parser.add_argument("--seed", default="", help="the first seed; without it each run has a fresh one")
    parser.add_argument("--runs", type=int, help=f"1 with --seed, {_RANDOM_RUNS} without, by default")
    parser.add_argument("--minutes", type=float, help="start no run after this time; no limit of --runs")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at the first failure")
    parser.add_argument("--length", type=int, default=LONG_MS, metavar="MS", help="virtual time with faults")
    parser.add_argument("--faults", default=",".join(FAULTS), help=f"the possible ones: {', '.join(FAULTS)}")
    parser.add_argument("--processes", type=int, default=_CORES, help="by default one for each core")
    return parser


def _seeds(options: _Options) -> Iterator[str]:
    """The seeds of all runs. It ends when the runs or the minutes are used up."""
    end = None if options.minutes is None else time.monotonic() + 60 * options.minutes
    first, run_count_max = options.seed, options.run_count_max
    for number in count() if run_count_max is None else range(run_count_max):
        if end is not None and time.monotonic() >= end:
            return
        if not first:
            yield str(randbelow(_RANDOM_SEEDS))
        elif first.isdecimal():
            yield str(int(first) + number)
        else:
            yield f"{first}+{number}" if number else first


if __name__ == "__main__":
    sys.exit(main())
