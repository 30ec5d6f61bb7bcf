"""A broker without HTTP and without spans loads none of their libraries."""

from __future__ import annotations

import subprocess
import sys

LIBRARIES = ("h11", "msgspec", "opentelemetry", "prometheus_client", "starlette", "uvicorn")
PROGRAM = f"""
import sys
import barnabas.cli.commands.serve
import barnabas.cli.process.serving
import barnabas.broker.config.loading
print(sorted(set({LIBRARIES!r}) & set(sys.modules)))
"""


def test_serving_loads_no_library_of_http_or_of_spans() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
