"""A command that runs as a process of its own, and begins with its modules already imported.

To import them takes most of the time in which a broker starts, and the tests start hundreds of brokers. So
`multiprocessing`'s fork server imports them once, and forks for each command. A command that another Python
has installed replaces the forked process instead.
"""

import multiprocessing
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from barnabas.__main__ import main
from barnabas.broker.handlers.lazy_handlers import WARMED_APIS
from barnabas.protocol.api import APIS
from tests.clients.installation import installed_barnabas

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        "barnabas.__main__",
        "barnabas.cli.process.serving",
        *(f"barnabas.broker.handlers.{APIS[api_key].name}" for api_key in WARMED_APIS),
    ]
)
_STDOUT, _STDERR = 1, 2


class ForkedCommand:
    """`command` with `arguments`, in the environment and the working directory of this process. `output` is
    its standard output; its errors go to this process's, or to the file with the descriptor `errors`.
    """

    def __init__(self, command: Path, arguments: Sequence[str], *, errors: int = _STDERR) -> None:
        reading, writing = os.pipe()
        self.output = os.fdopen(reading)
        with (
            Connection(writing, readable=False) as output,
            Connection(os.dup(errors), readable=False) as log,
        ):
            given = (command, list(arguments), dict(os.environ), output, log)
            self._process = _CONTEXT.Process(target=_run, args=given)
            self._process.start()

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs, and the negative number of a signal that ended it."""
        return self._process.exitcode

    def end(self, number: signal.Signals) -> int:
        """Sends a signal that must end it, unless it has ended; returns its exit code."""
        if self._process.is_alive():
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)
        self._process.join()
        assert self.exit_code is not None
        return self.exit_code


def _run(
    command: Path, arguments: list[str], environment: Mapping[str, str], output: Connection, log: Connection
) -> None:
    """In the new process."""
    os.dup2(output.fileno(), _STDOUT)
    os.dup2(log.fileno(), _STDERR)
    os.environ.clear()
    os.environ.update(environment)
    if command != installed_barnabas():
        os.execv(command, [str(command), *arguments])
    sys.exit(main(arguments))
