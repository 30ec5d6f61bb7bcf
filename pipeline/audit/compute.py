"""PyArrow's compute functions. They have no type information, so `pc` is `Any`, like `pa`."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from barnabas.pipeline.columnar import RecordBatch
from barnabas.pipeline.decoding.arrow import pa

__all__ = ["RecordBatch", "pa", "pc"]

pc: Final[Any] = import_module("pyarrow.compute")
