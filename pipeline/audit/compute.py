"""Arrow's compute functions, which have no types of their own: behind `pc` stands `Any`, as behind `pa`."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from barnabas.pipeline.columnar import RecordBatch
from barnabas.pipeline.decoding.arrow import pa

__all__ = ["RecordBatch", "pa", "pc"]

pc: Final[Any] = import_module("pyarrow.compute")
