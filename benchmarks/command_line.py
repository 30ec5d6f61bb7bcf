"""`python -m benchmarks.command_line`: how long `barnabas --help`, and the help and completion of each
command take.

The time that a user waits is measured beside the start of Python itself, which is its greatest part, and the
processor time, which other programs on the machine change less. Exit code 1 with --strict if a help takes
`SECONDS_MAX` or longer.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Final, NamedTuple

from barnabas.cli.commands import COMMANDS

SECONDS_MAX: Final = 0.15
REPEATS: Final = 15
_MS_PER_SECOND: Final = 1000

BARNABAS: Final = str(Path(sys.executable).with_name("barnabas"))


class Duration(NamedTuple):
    """The medians of one command."""

    seconds: float
    cpu_seconds: float


def main() -> int:
    """Print one line for each command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strict", action="store_true", help="fail if a help is too slow")
    options = parser.parse_args()
    is_slow = False
    print(f"{'':<30} {'ms':>6} {'CPU ms':>7}")
    for name, command in commands().items():
        duration = measure(command, {"BARNABAS_CLIENT_BOOTSTRAP": "127.0.0.1:1"})
        is_slow = is_slow or ("--help" in command and duration.seconds >= SECONDS_MAX)
        figures = f"{duration.seconds * _MS_PER_SECOND:>6.0f} {duration.cpu_seconds * _MS_PER_SECOND:>7.0f}"
        print(f"{name:<30} {figures}", flush=True)
    return int(is_slow and options.strict)


def commands() -> dict[str, Sequence[str]]:
    """The commands to measure, by their names in the table."""
    completion = (
        "_ARGCOMPLETE=1 _ARGCOMPLETE_SHELL=bash COMP_LINE='barnabas groups re' COMP_POINT=18 COMP_TYPE=9 "
        f"{BARNABAS} 8>/dev/null"
    )
    return {
        "python -c pass": [sys.executable, "-c", "pass"],
        "barnabas --help": [BARNABAS, "--help"],
        **{f"barnabas {one.name} --help": [BARNABAS, one.name, "--help"] for one in COMMANDS},
        "a completion": ["bash", "-c", completion],
    }


def measure(command: Sequence[str], environment: Mapping[str, str]) -> Duration:
    """The medians of several runs, after one that loads the files into memory."""
    runs = [_run(command, environment) for _ in range(REPEATS + 1)][1:]
    return Duration(*map(statistics.median, zip(*runs, strict=True)))


def _run(command: Sequence[str], environment: Mapping[str, str]) -> Duration:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = perf_counter()
    subprocess.run(command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, check=True)
    seconds = perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Duration(seconds, cpu_seconds)


if __name__ == "__main__":
    sys.exit(main())
