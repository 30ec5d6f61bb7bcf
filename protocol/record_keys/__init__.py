"""Hashes of records' keys, and batches reduced to some of their records.

The hash is the one by which Java's default partitioner chooses a partition: murmur2 without its sign, 31
bits. Records with equal hashes count as records of one key. Ordered share groups and consumers that share a
partition go by it. A native module does the work if it could be built, otherwise an equivalent module in
Python does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.protocol.record_keys.shapes import NO_KEY, KeyHashes

if TYPE_CHECKING:
    from barnabas.protocol.record_keys._python import kept_records, key_hash, key_hashes

    IS_NATIVE: bool
    """Whether the fast module is in use."""
else:
    try:
        from barnabas.protocol.record_keys._native import IS_NATIVE, kept_records, key_hash, key_hashes
    except ImportError:
        from barnabas.protocol.record_keys._python import IS_NATIVE, kept_records, key_hash, key_hashes

HASH_MAX: Final = 0x7FFFFFFF
"""The largest hash; the smallest is 0."""

__all__ = ["HASH_MAX", "IS_NATIVE", "NO_KEY", "KeyHashes", "kept_records", "key_hash", "key_hashes"]
