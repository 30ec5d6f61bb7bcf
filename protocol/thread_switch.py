"""Lets other threads run inside the long loops of compiled code. This module is never compiled.

Large messages are read and written in a thread (`runtime.long_work`). The interpreter gives way to a thread
that waits, such as the loop's, when a function or a round of a loop begins. Compiled loops never do. So loops
over parts of a message that may be large call `switch_threads` in each round whose number has all bits of
`SWITCH_MASK`; two nested ones run some thousands of rounds in between.
"""

from __future__ import annotations

from typing import Final

SWITCH_MASK: Final = 63


def switch_threads() -> None:
    """Does nothing itself: the interpreter gives way, if its interval is over, when it enters a function."""
