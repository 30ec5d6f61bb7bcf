"""Memory for the page cache that costs each broker the same.

The host of a virtual machine allocates memory one page at a time when it is first written, and reclaims it
when it has been free for a while. A broker that appends to a log gets allocated pages, or pays six times as
much for new ones. Without preparation, chance would decide which broker pays.
"""

import tempfile

_WRITTEN_AT_ONCE = bytes(1024 * 1024)


def make_room(byte_count: int) -> None:
    """Write this many bytes and free them, so that the next writes find allocated pages."""
    with tempfile.TemporaryFile() as file:
        for _ in range(0, byte_count, len(_WRITTEN_AT_ONCE)):
            file.write(_WRITTEN_AT_ONCE)
