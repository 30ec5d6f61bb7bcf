"""The decoder of control records: the native one, or its pure twin if that wasn't built."""

from __future__ import annotations

from typing import Final

from barnabas.pipeline.audit import control_walk
from barnabas.pipeline.audit.control_columns import ControlColumns

try:
    from barnabas.pipeline.audit._native import fill_columns, walk
except ImportError:
    from barnabas.pipeline.audit.control_columns import fill_columns
    from barnabas.pipeline.audit.control_walk import walk

__all__ = ["IS_NATIVE", "read_columns", "walk"]

IS_NATIVE: Final = walk is not control_walk.walk


def read_columns(payload: bytes) -> ControlColumns:
    """The columns of a complete pack."""
    columns = ControlColumns(payload)
    fill_columns(columns)
    return columns
