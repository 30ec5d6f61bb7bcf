"""`python -m tests.load [--times 3] -- COMMAND...`: run a command on a busy machine.

Beside the command run processes that do nothing but compute, `--times` as many as there are cores. A test
that fails here and passes alone assumes how fast the machine is. The exit code is that of the command, 128
plus the signal that ended it, or 127 if there is no such command.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager

# A process looks for its parent, so it ends even if the parent is killed and cannot end it.
_BUSY = "import os, sys\nwhile os.getppid() == int(sys.argv[1]):\n    sum(range(100_000))"


_NOT_FOUND = 127


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command beside the load; its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.load", description=__doc__)
    parser.add_argument(
        "--times", type=int, default=3, metavar="N", help="busy processes for each core (default: 3)"
    )
    parser.add_argument("command", nargs="+", metavar="COMMAND")
    options = parser.parse_args(arguments)
    with busy_processes(options.times * len(os.sched_getaffinity(0))):
        try:
            code = subprocess.run(options.command, check=False).returncode
        except FileNotFoundError:
            parser.exit(_NOT_FOUND, f"load: there is no command {options.command[0]}\n")
    return code if code >= 0 else 128 - code


@contextmanager
def busy_processes(count: int) -> Generator[list[subprocess.Popen[bytes]]]:
    """Keeps this many processors busy until the end of the block, or of this process."""
    command = [sys.executable, "-c", _BUSY, str(os.getpid())]
    # In sessions of their own: Ctrl-C goes to the command, and not to them.
    processes = [subprocess.Popen(command, start_new_session=True) for _ in range(count)]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
