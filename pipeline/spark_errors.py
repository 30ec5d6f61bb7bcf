"""Errors of Spark in one line.

Such an error holds the stack of a Python worker inside the stack of the JVM. This module does not load
PySpark.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from barnabas.pipeline.errors import PipelineError

_RAISED_IN_WORKER: Final = re.compile(r"^(?:\w+Error: )?barnabas\.[\w.]*?(\w+): (.+)$", re.MULTILINE)
_RAISED_IN_PYTHON: Final = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)*(\S.*)")
"""A traceback up to the line of its exception, which is the first that isn't indented."""
_CALLED_JAVA: Final = "py4j.protocol.Py4J"
"""Python's name for an error in Java; the next lines are the error itself."""
_CONDITION: Final = re.compile(r"^\[(?!STREAM_FAILED)[A-Z_]+(?:\.[A-Z_]+)*\] ")
"""An error that Spark explains itself. STREAM_FAILED only reports that a query ended."""
_RAISED_IN_JAVA: Final = re.compile(r"^(?:Caused by: |: )(?:[\w$]+\.)+([\w$]+)(?:: (.+))?$", re.MULTILINE)
"""The class and the message of an error; each `Caused by` is the cause of the one before."""


class SparkProcessError(PipelineError):
    """Spark's JVM did not start, or it ended before it was stopped."""


class RaisedInWorker(NamedTuple):
    """An error of the pipeline itself in one of Spark's Python workers."""

    kind: str
    """The name of its class."""
    message: str


def is_spark_error(error: BaseException) -> bool:
    """Whether PySpark or Py4J raised this error."""
    return type(error).__module__.startswith(("pyspark.", "py4j."))


def is_py4j_error(error: BaseException) -> bool:
    """Whether Py4J raised it: the JVM is lost, or PySpark has no class for the Java error."""
    return type(error).__module__.startswith("py4j.")


def has_more_in_log(error: BaseException) -> bool:
    """Whether Spark's log may have more details than the error."""
    return is_spark_error(error) or isinstance(error, SparkProcessError)


def java_trace(error: BaseException) -> str:
    """The stack of an error in Java; empty if there is none."""
    trace: str | None = getattr(error, "_stackTrace", None)
    return trace or ""


def raised_in_worker(text: str) -> RaisedInWorker | None:
    """The last error of the pipeline itself in the text of an error of Spark."""
    raised: list[tuple[str, str]] = _RAISED_IN_WORKER.findall(text)
    return RaisedInWorker(*raised[-1]) if raised else None


def root_cause(error: Exception) -> str:
    """The cause in one line: the first of these that the text has.

    The last error of the pipeline itself, the last error of Python, an error condition of Spark, the root
    cause in Java, the first line.
    """
    text = str(error)
    raised = raised_in_worker(text)
    if raised is not None:
        return raised.message
    tracebacks: list[str] = _RAISED_IN_PYTHON.findall(text)
    if tracebacks and not tracebacks[-1].startswith(_CALLED_JAVA):
        return tracebacks[-1]
    if _CONDITION.match(text):
        return _first_line(text)
    causes = _RAISED_IN_JAVA.findall(f"{text}\n: {java_trace(error)}")
    return _told(*causes[-1]) if causes else _first_line(text)


def _told(java_class: str, message: str) -> str:
    return f"{message} ({java_class})" if message else java_class


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0]
