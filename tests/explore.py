"""`make explore MINUTES=30`: search for failures with fresh random choices until the time is over.

    python -m tests.explore [--minutes M] [--seed N] [--only NAME,NAME...]

The gate (`.ci/run`) has fixed seeds, so it fails only if a change is wrong. Everything random is here. The
explorers take turns. Each turn is a command that is printed before it runs, with its seed or part, and that
repeats the turn. A failure does not end the exploration: its output is kept in `.cache/explore`, and the
summary at the end repeats its command. All choices follow from `--seed`, which is fresh without the option.

Exit code 0 if no turn failed, 1 if one failed, 130 after Ctrl-C, with the summary so far.
"""

from __future__ import annotations

import argparse
import itertools
import random
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from secrets import randbelow
from typing import NamedTuple

PROJECT = Path(__file__).resolve().parents[1]
OUTPUT = PROJECT / ".cache" / "explore"

_MINUTES = 30.0
_RANDOM_SEEDS = 10**9
_SIMULATION_MINUTES_MAX = 3
_HISTORIES = 10
_FUZZ_SECONDS = 3
_RARE_PARTS = 4
_MATRIX_PARTS = 8
_DIST_PARTS = 3
_SHOWN_LINES = 40
"""The last lines of a failed turn that are printed at once."""

Command = Sequence[str]
Explorer = Callable[[random.Random, float], Command]
"""Chooses the command of its next turn. The second argument is the number of minutes that are left."""


def _simulation(random: random.Random, minutes_left: float) -> Command:
    """Runs of the simulator from a fresh seed on, which go on after a failure."""
    minutes = max(1, min(_SIMULATION_MINUTES_MAX, round(minutes_left)))
    return ("make", "sim", f"SEED={random.randrange(_RANDOM_SEEDS)}", f"MINUTES={minutes}", "KEEP_GOING=1")


def _properties(random: random.Random, minutes_left: float) -> Command:
    """The properties and models of Hypothesis, which the gate checks with fixed examples."""
    seed = random.randrange(_RANDOM_SEEDS)
    return ("make", "properties", f"SEED={seed}")


def _histories(random: random.Random, minutes_left: float) -> Command:
    """Fresh histories, compared with Apache Kafka."""
    return ("make", "diff", f"SEED={random.randrange(_RANDOM_SEEDS)}", f"RUNS={_HISTORIES}")


def _fuzz(random: random.Random, minutes_left: float) -> Command:
    """Arbitrary bytes for each reader. Bytes that fail are kept in .cache/fuzz."""
    return ("make", "fuzz", f"SECONDS={_FUZZ_SECONDS}")


def _rare(random: random.Random, minutes_left: float) -> Command:
    """A part of what seldom finds a defect: many kills, and the recorded output of Kafka's tools on Kafka."""
    return ("make", "rare", f"PART={random.randint(1, _RARE_PARTS)}/{_RARE_PARTS}")


def _matrix(random: random.Random, minutes_left: float) -> Command:
    """A part of the pipeline's failure matrix."""
    return ("make", "matrix", "REPEATS=1", f"PART={random.randint(1, _MATRIX_PARTS)}/{_MATRIX_PARTS}")


def _dist(random: random.Random, minutes_left: float) -> Command:
    """A part of the tests of a release."""
    return ("make", "dist", f"PART={random.randint(1, _DIST_PARTS)}/{_DIST_PARTS}")


EXPLORERS: Mapping[str, Explorer] = {  # by the target of make
    "sim": _simulation,
    "properties": _properties,
    "diff": _histories,
    "fuzz": _fuzz,
    "rare": _rare,
    "matrix": _matrix,
    "dist": _dist,
}


class Turn(NamedTuple):
    """A turn that is over."""

    explorer: str
    command: Command
    seconds: float
    exit_code: int
    output: Path


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    print(f"exploring: --minutes {options.minutes:g} --seed {options.seed}", flush=True)
    turns: list[Turn] = []
    interrupted = False
    try:
        explorers = {name: EXPLORERS[name] for name in options.only}
        explore(turns, explorers, random.Random(options.seed), options.minutes)
    except KeyboardInterrupt:
        interrupted = True
    failed = [turn for turn in turns if turn.exit_code]
    print(summary(turns))
    return 1 if failed else 130 if interrupted else 0


def explore(
    turns: list[Turn],
    explorers: Mapping[str, Explorer],
    random: random.Random,
    minutes: float,
    *,
    now_seconds: Callable[[], float] = time.monotonic,
    folder: Path = OUTPUT,
) -> None:
    """Adds to `turns` until the minutes are over; no turn starts after that."""
    end = now_seconds() + 60 * minutes
    for number, (name, explorer) in enumerate(itertools.cycle(explorers.items()), start=1):
        left = end - now_seconds()
        if left <= 0:
            return
        command = explorer(random, left / 60)
        print(f"{name}: {shlex.join(command)}", flush=True)
        turns.append(_take_turn(name, command, folder / f"{number:03}-{name}.log"))


def _take_turn(name: str, command: Command, output: Path) -> Turn:
    output.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with output.open("wb") as file:
        done = subprocess.run(command, cwd=PROJECT, stdout=file, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        lines = output.read_text(encoding="utf-8", errors="replace").splitlines()
        print("\n".join(lines[-_SHOWN_LINES:]))
        print(f"failed with exit code {done.returncode}; all output: {output}", flush=True)
    return Turn(name, command, time.monotonic() - started, done.returncode, output)


def summary(turns: Sequence[Turn]) -> str:
    """A line for each explorer, then the command of each failed turn."""
    lines = [f"{'explorer':12}{'turns':>6}{'failed':>8}{'s':>7}"]
    for name in dict.fromkeys(turn.explorer for turn in turns):
        own = [turn for turn in turns if turn.explorer == name]
        failed = sum(bool(turn.exit_code) for turn in own)
        lines.append(f"{name:12}{len(own):>6}{failed:>8}{sum(turn.seconds for turn in own):>7.0f}")
    lines += [f"failed: {shlex.join(turn.command)}" for turn in turns if turn.exit_code]
    return "\n".join(lines)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.explore", description="Search for failures.")
    parser.add_argument("--minutes", type=float, default=_MINUTES)
    parser.add_argument("--seed", type=int, default=randbelow(_RANDOM_SEEDS), help="fresh by default")
    parser.add_argument("--only", type=_names, default=list(EXPLORERS), metavar="NAME,...")
    return parser.parse_args(arguments)


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in EXPLORERS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]} is none of {', '.join(EXPLORERS)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
