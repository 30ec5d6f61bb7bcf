"""The installed package that the tests use."""

import sys
from pathlib import Path


def installed_barnabas() -> Path:
    """The barnabas command that is installed beside this Python."""
    return Path(sys.executable).with_name("barnabas")
