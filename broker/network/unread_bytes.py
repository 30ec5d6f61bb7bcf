"""How many bytes a client has sent that nothing has read yet. No transport of asyncio tells it."""

import asyncio
import fcntl
import struct
import termios

_COUNT = struct.Struct("i")


def unread_bytes(transport: asyncio.Transport) -> int:
    """What the system holds for the connection, in bytes: 0 if it cannot be asked, as after the end."""
    connected = transport.get_extra_info("socket")
    if connected is None or transport.is_closing():
        return 0
    try:
        answer = fcntl.ioctl(connected.fileno(), termios.FIONREAD, bytes(_COUNT.size))
    except (OSError, ValueError):
        return 0
    count: int
    (count,) = _COUNT.unpack(answer)
    return count
