"""Room in the page cache that costs each broker the same.

The host of a virtual machine gives it memory when that is first written to, a page at a time, and takes it
back when it has been free for a while. Whoever appends to a log gets pages that are there, or pays six times
as much for those that are not; which of two brokers does is chance.
"""

import tempfile

_WRITTEN_AT_ONCE = bytes(1024 * 1024)


def make_room(byte_count: int) -> None:
    """Have as much written and given up, so that what is written next finds pages that are there."""
    with tempfile.TemporaryFile() as file:
        for _ in range(0, byte_count, len(_WRITTEN_AT_ONCE)):
            file.write(_WRITTEN_AT_ONCE)
