"""What a command ends with: an exit code, and one line for each thing that went wrong on purpose.

    0     done
    1     failed: the line on standard error says why
    2     wrong options, or an input that doesn't fit; nothing was done
    130   stopped by SIGINT or SIGTERM (128 + SIGINT); the line says how to go on

Errors of Spark carry the stack of a Python worker inside the stack of a JVM. Their line is the last that the
pipeline itself raised in there, or the last that Python raised at all, or Spark's own first line.
"""

from __future__ import annotations

import logging
import re
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Final

from barnabas.pipeline.errors import OptionError, PipelineError

if TYPE_CHECKING:
    from argparse import Namespace

EXIT_FAILED: Final = 1
EXIT_WRONG_OPTIONS: Final = 2
EXIT_STOPPED: Final = 128 + signal.SIGINT

_EXTRA: Final = frozenset({"pyspark", "pyarrow", "py4j"})
_RAISED_IN_WORKER: Final = re.compile(r"^(?:\w+Error: )?barnabas\.[\w.]*?(\w+): (.+)$", re.MULTILINE)
_RAISED_IN_PYTHON: Final = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)*(\S.*)")
"""A traceback up to the line of its exception, which is the first that isn't indented."""


def run_reporting_failures(run: Callable[[Namespace], int], options: Namespace) -> int:
    """Calls `run`; answers its exit code, or that of what it raised. Anything unforeseen is raised."""
    try:
        with _stopped_by_signals():
            return run(options)
    except KeyboardInterrupt:
        return _complain(f"Stopped. {options.resume}".rstrip(), EXIT_STOPPED)
    except OptionError as error:
        return _complain(str(error), EXIT_WRONG_OPTIONS)
    except Exception as error:
        reason = explain(error)
        if reason is None:
            raise
        return _complain(reason, EXIT_WRONG_OPTIONS if _is_wrong_option(error) else EXIT_FAILED)


def explain(error: Exception) -> str | None:
    """One line for an error that is no bug; None for any other."""
    if isinstance(error, ModuleNotFoundError):
        return _missing_extra(error)
    if isinstance(error, PipelineError):
        return _first_line(str(error))
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror or error}."
    if type(error).__module__.startswith(("pyspark.", "py4j.")):
        return _of_spark(str(error))
    return _of_client(error)


def _missing_extra(error: ModuleNotFoundError) -> str | None:
    missing = (error.name or "").partition(".")[0]
    if missing not in _EXTRA:
        return None
    return f"The pipeline needs {missing}: pip install 'barnabas[spark]'"


def _of_spark(text: str) -> str:
    raised = _raised_in_worker(text)
    if raised is not None:
        return raised[1]
    tracebacks: list[str] = _RAISED_IN_PYTHON.findall(text)
    return f"Spark failed: {tracebacks[-1] if tracebacks else _first_line(text)}"


def _is_wrong_option(error: Exception) -> bool:
    """Whether Spark tells of an `OptionError`: its workers parse the options of a source."""
    raised = _raised_in_worker(str(error))
    return raised is not None and raised[0] == OptionError.__name__


def _raised_in_worker(text: str) -> tuple[str, str] | None:
    """The name and the message of the last error of the pipeline's own in there."""
    raised: list[tuple[str, str]] = _RAISED_IN_WORKER.findall(text)
    return raised[-1] if raised else None


def _of_client(error: Exception) -> str | None:
    from barnabas.client.errors import ConsumerError

    return _first_line(str(error)) if isinstance(error, ConsumerError) else None


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0]


@contextmanager
def _stopped_by_signals() -> Generator[None]:
    """SIGTERM, which containers and schedulers send, ends a command like Ctrl-C does.

    What libraries log of being interrupted is nothing that anybody needs to see.
    """

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        logging.disable()
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
        for number, handler in before.items():
            signal.signal(number, handler)


def _complain(message: str, exit_code: int) -> int:
    print(f"barnabas: {message}", file=sys.stderr)
    return exit_code
