"""Errors of Spark and of the connection to its JVM, in one line."""

import pytest

from barnabas.pipeline.spark_errors import SparkProcessError, has_more_in_log, root_cause

JAVA = """An error occurred while calling o94.start.
: org.apache.spark.SparkException: Job aborted.
\tat org.apache.spark.sql.execution.Writer.write(Writer.scala:1)
Caused by: java.io.IOException: mkdir of file:/proc/nosuch failed
\tat org.apache.hadoop.fs.FileSystem.mkdir(FileSystem.java:1)
"""


class Py4JJavaError(Exception):
    __module__ = "py4j.protocol"


class StreamingQueryException(Exception):  # noqa: N818  named as PySpark names it
    __module__ = "pyspark.errors.exceptions.captured"

    def __init__(self, text: str, stack: str = "") -> None:
        super().__init__(text)
        self._stackTrace = stack


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (Py4JJavaError(JAVA), "mkdir of file:/proc/nosuch failed (IOException)"),
        (Py4JJavaError("An error occurred.\n: java.lang.OutOfMemoryError\n\tat x"), "OutOfMemoryError"),
        (Py4JJavaError("Answer from Java side is empty"), "Answer from Java side is empty"),
        (
            StreamingQueryException("[UNRESOLVED_COLUMN.WITH_SUGGESTION] No `x`.\n'Filter x", ": a.B: c\n"),
            "[UNRESOLVED_COLUMN.WITH_SUGGESTION] No `x`.",
        ),
        (
            StreamingQueryException(
                "[STREAM_FAILED] Query ended.",
                "org.apache.spark.Ended: ended\nCaused by: java.io.IOException: No space left on device\n",
            ),
            "No space left on device (IOException)",
        ),
        (
            StreamingQueryException(
                f"Traceback (most recent call last):\n  x\npy4j.protocol.Py4JJavaError: {JAVA}"
            ),
            "mkdir of file:/proc/nosuch failed (IOException)",
        ),
    ],
)
def test_the_root_cause_is_reported(error: Exception, line: str) -> None:
    assert root_cause(error) == line


def test_the_log_has_more_about_errors_of_spark_alone() -> None:
    assert has_more_in_log(Py4JJavaError("x"))
    assert has_more_in_log(SparkProcessError("x"))
    assert not has_more_in_log(ValueError("x"))
