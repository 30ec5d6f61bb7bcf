"""Checks for Java before a JVM is started, and finds the reason in one line if one did not start."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from barnabas.pipeline.errors import PipelineError

NEEDED: Final = "Spark needs Java 17 or later"

_TOO_OLD: Final = "UnsupportedClassVersionError"
_THROWN: Final = re.compile(r'^Exception in thread ".*" (?:[\w$]+\.)*([\w$]+): (.+)$')
_COMPLAINT: Final = re.compile(r"^(?:Error: |Unrecognized )")


def check_java(environment: Mapping[str, str] = os.environ) -> None:
    """Raises `PipelineError` if Spark would find no Java in `JAVA_HOME`, or without it in `PATH`."""
    home = environment.get("JAVA_HOME")
    if home:
        if not os.access(Path(home) / "bin" / "java", os.X_OK):
            raise PipelineError(f"{NEEDED}, and JAVA_HOME={home} has no bin/java: correct JAVA_HOME.")
    elif shutil.which("java", path=environment.get("PATH")) is None:
        raise PipelineError(f"{NEEDED}: install it, or set JAVA_HOME to its directory.")


def startup_failure(printed: Sequence[str]) -> str:
    """The cause in one line, from the output of `spark-submit` and the JVM."""
    if any(_TOO_OLD in line for line in printed):
        return f"{NEEDED}; the Java that was found is older: set JAVA_HOME to a newer one."
    for line in printed:
        thrown = _THROWN.match(line)
        if thrown is not None:
            return f"Spark did not start: {thrown[2]} ({thrown[1]})"
        if _COMPLAINT.match(line):
            return f"Spark did not start: {line.removeprefix('Error: ')}"
    last = next((line for line in reversed(printed) if line.strip()), "the JVM ended without a message")
    return f"Spark did not start: {last.strip()}"
