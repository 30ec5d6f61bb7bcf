"""The distributions that `pip install barnabas` brings on Linux, with those that they need themselves.

docs/installing.md lists them. There is no JVM, no Spark and no Node among them.
"""

import sys
from typing import Final

_OLDER_PYTHON: Final = frozenset({"typing-extensions"} if sys.version_info < (3, 13) else ())

DEPENDENCIES: Final = _OLDER_PYTHON | {
    "aiofiles",
    "argcomplete",
    "cramjam",
    "crc32c",
    "google-re2",
    "kio",
    "markdown-it-py",
    "mdurl",
    "pygments",
    "rich",
    "structlog",
    "uvloop",
}

CONSOLE_LIBRARIES: Final = frozenset({"preact", "uplot"})
"""The libraries from npm whose code is in the console."""
