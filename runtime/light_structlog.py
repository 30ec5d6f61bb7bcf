"""structlog, loaded without rich.

structlog loads rich for tracebacks in colour if it is installed, as it is for the commands. Our log prints
plain tracebacks, and rich would make the start of a broker a tenth longer and take 4 MB of its memory.
"""

import sys

_is_loaded = "rich" in sys.modules
if not _is_loaded:
    sys.modules["rich"] = None  # type: ignore[assignment]  # None makes an import fail, as if it were not installed
try:
    import structlog
    from structlog.types import FilteringBoundLogger, Processor
finally:
    if not _is_loaded:
        del sys.modules["rich"]

__all__ = ["FilteringBoundLogger", "Processor", "structlog"]
