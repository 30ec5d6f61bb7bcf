"""The end of a command: an exit code, and one line for an expected error.

0     done, or stopped in order: an ingest that SIGINT or SIGTERM ends between two batches
1     failed: the line on standard error gives the reason
2     wrong options, if they are found without reading the input; nothing was done
130   stopped by SIGINT or SIGTERM (128 + SIGINT); the line explains how to go on
"""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Final

from barnabas.pipeline.errors import OptionError, PipelineError, install_hint
from barnabas.pipeline.spark_errors import is_spark_error, raised_in_worker, root_cause

if TYPE_CHECKING:
    from argparse import Namespace

EXIT_FAILED: Final = 1
EXIT_WRONG_OPTIONS: Final = 2
EXIT_STOPPED: Final = 128 + signal.SIGINT

_EXTRA: Final = frozenset({"pyspark", "pyarrow", "py4j"})


def run_reporting_failures(run: Callable[[Namespace], int], options: Namespace) -> int:
    """Calls `run`; returns its exit code, or that of an expected error. Raises any other error."""
    try:
        with _stopped_by_signals():
            return run(options)
    except KeyboardInterrupt:
        return _report_error(f"Stopped. {options.resume}".rstrip(), EXIT_STOPPED)
    except OptionError as error:
        return _report_error(str(error), EXIT_WRONG_OPTIONS)
    except Exception as error:
        reason = explain(error)
        if was_stopped(error):
            return _report_error(f"Stopped. {options.resume}".rstrip(), EXIT_STOPPED)
        if reason is None:
            raise
        line = ". ".join([reason.rstrip("."), *notes]) if (notes := _notes(error)) else reason
        return _report_error(line, EXIT_WRONG_OPTIONS if _is_wrong_option(error) else EXIT_FAILED)


def _notes(error: BaseException) -> list[str]:
    """The notes of an error, such as the file with its details."""
    notes: list[str] = getattr(error, "__notes__", [])
    return notes


def was_stopped(error: BaseException) -> bool:
    """Whether the error came after a stop: clean-up may fail then, for example because the JVM is gone."""
    context = error.__context__
    return isinstance(context, KeyboardInterrupt) or (context is not None and was_stopped(context))


def explain(error: Exception) -> str | None:
    """One line for an expected error; None for a bug."""
    if isinstance(error, ModuleNotFoundError):
        return _missing_extra(error)
    if isinstance(error, PipelineError):
        return _first_line(str(error))
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror or error}."
    if is_spark_error(error):
        raised = raised_in_worker(str(error))
        return raised.message if raised is not None else f"Spark failed: {root_cause(error)}"
    return _of_client(error)


def _missing_extra(error: ModuleNotFoundError) -> str | None:
    missing = (error.name or "").partition(".")[0]
    if missing not in _EXTRA:
        return None
    return f"The pipeline needs {missing}: {install_hint('spark')}"


def _is_wrong_option(error: Exception) -> bool:
    """Whether Spark reports an `OptionError` of a worker: workers parse the options of a source."""
    raised = raised_in_worker(str(error))
    return raised is not None and raised.kind == OptionError.__name__


def _of_client(error: Exception) -> str | None:
    from barnabas.client.errors import ConsumerError

    return _first_line(str(error)) if isinstance(error, ConsumerError) else None


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0]


@contextmanager
def _stopped_by_signals() -> Generator[None]:
    """SIGTERM, which containers and schedulers send, ends a command like Ctrl-C.

    From then on logging is off: libraries would log that they were interrupted.
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


def _report_error(message: str, exit_code: int) -> int:
    print(f"barnabas: {message}", file=sys.stderr)
    return exit_code
