"""The number of received bytes that the process has not read from a socket. asyncio has no call for it."""

import asyncio
import fcntl
import struct
import termios

_COUNT = struct.Struct("i")


def unread_bytes(transport: asyncio.Transport) -> int:
    """The bytes in the system's receive buffer; 0 if the system cannot tell, as after the connection's
    end.
    """
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
