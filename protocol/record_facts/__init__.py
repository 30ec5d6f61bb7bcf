"""The facts of a record by which share groups delay, expire and rank it: its timestamp, and one header.

A native module does the work if it could be built, otherwise an equivalent module in Python does. Keys and
values of records are passed over without a copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.record_facts.shapes import RecordFacts

if TYPE_CHECKING:
    from barnabas.protocol.record_facts._python import record_facts

    IS_NATIVE: bool
    """Whether the fast module is in use."""
else:
    try:
        from barnabas.protocol.record_facts._native import IS_NATIVE, record_facts
    except ImportError:
        from barnabas.protocol.record_facts._python import IS_NATIVE, record_facts

__all__ = ["IS_NATIVE", "RecordFacts", "record_facts"]
