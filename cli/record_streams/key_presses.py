"""Single key presses of a terminal, without Enter and without an echo."""

from __future__ import annotations

import asyncio
import os
import termios
import tty
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, TextIO

_BYTES_AT_ONCE: Final = 64
END_OF_INPUT: Final = ""
"""The press that stands for the end of the terminal."""


@contextmanager
def key_presses(terminal: TextIO) -> Generator[asyncio.Queue[str]]:
    """The keys that the user presses during the block. Ctrl-C still interrupts the program.

    The terminal has its former mode again at the end.
    """
    descriptor = terminal.fileno()
    presses: asyncio.Queue[str] = asyncio.Queue()

    def read() -> None:
        data = os.read(descriptor, _BYTES_AT_ONCE)
        if not data:
            loop.remove_reader(descriptor)
            presses.put_nowait(END_OF_INPUT)
        for key in data.decode(errors="ignore"):
            presses.put_nowait(key)

    loop = asyncio.get_running_loop()
    mode = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    loop.add_reader(descriptor, read)
    try:
        yield presses
    finally:
        loop.remove_reader(descriptor)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, mode)
