"""What a client is told it may do with a group (KIP-430): everything, since nobody is refused anything."""

from __future__ import annotations

from barnabas.protocol.primitive import i32

_ALL_OPERATIONS = i32(1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11)
"""READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS."""

_NOT_ASKED_FOR = i32(-(2**31))


def authorized_operations(*, asked_for: bool) -> i32:
    """The bits of the operations."""
    return _ALL_OPERATIONS if asked_for else _NOT_ASKED_FOR
