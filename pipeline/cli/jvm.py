"""The JVM of a command: started with its output in the log file, and watched until the command ends.

The JVM is in a process group of its own: a signal for the command's group must not end Spark before the
command has stopped it.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from subprocess import Popen, TimeoutExpired
from typing import TYPE_CHECKING, Any, Final, cast

from barnabas.pipeline.cli.command_log import CommandLog
from barnabas.pipeline.cli.java import startup_failure
from barnabas.pipeline.spark_errors import SparkProcessError

if TYPE_CHECKING:
    from pyspark import SparkConf, SparkContext

END_SECONDS: Final = 0.5
"""How long a JVM whose connections broke may take to end."""

_ERROR_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""PySpark prints some errors through these loggers, and raises them as well."""

log = logging.getLogger(__name__)


@contextmanager
def launched_jvm(wanted: Mapping[str, str], name: str, output: CommandLog) -> Generator[None]:
    """A JVM and a context in it, which all sessions of this process use.

    The session stops the context. Raises `SparkProcessError` if the JVM does not start or is lost.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.logger import PySparkLogger

    for logger in _ERROR_LOGGERS:
        PySparkLogger.getLogger(logger).setLevel(logging.CRITICAL)
    conf = SparkConf().setAll(list(wanted.items())).setAppName(name)
    gateway = _launch(conf, output)
    with restored_sigint():
        context = SparkContext(conf=conf, gateway=gateway)
    _log_lost_updates(context)
    try:
        yield
    except Exception as error:
        _raise_if_ended(gateway.proc, error)
        raise


def _launch(conf: SparkConf, output: CommandLog) -> Any:
    """Py4J's gateway, which has no types; `proc` is the JVM. Raises `SparkProcessError`."""
    from pyspark.errors import PySparkRuntimeError

    launch = cast("Callable[..., Any]", import_module("pyspark.java_gateway").launch_gateway)
    printed = output.open_pipe()
    try:
        return launch(conf, {"stdout": printed, "stderr": printed, "start_new_session": True})
    except PySparkRuntimeError as error:
        failure = error
    finally:
        os.close(printed)
    output.drain()
    raise SparkProcessError(startup_failure(output.lines())) from failure


def _raise_if_ended(jvm: Popen[bytes], error: Exception) -> None:
    """Raises `SparkProcessError` if the JVM is gone, which explains any error."""
    try:
        code = jvm.wait(END_SECONDS)
    except TimeoutExpired:
        return
    ending = f"was killed by signal {-code}: is there enough memory?" if code < 0 else f"ended with {code}"
    raise SparkProcessError(f"Spark's JVM {ending}") from error


def _log_lost_updates(context: SparkContext) -> None:
    """Sends to the log the traceback that PySpark's accumulator server prints when the JVM is gone."""

    def note(_request: object, _address: object) -> None:
        log.warning("The JVM was lost.", exc_info=True)

    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = note


@contextmanager
def restored_sigint() -> Generator[None]:
    """Undoes PySpark's own handling of SIGINT, which it installs with each context."""
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, interrupt)
