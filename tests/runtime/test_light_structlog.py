"""structlog is loaded without rich, which commands use all the same."""

from __future__ import annotations

import subprocess
import sys


def test_logging_loads_no_rich_and_leaves_it_to_others() -> None:
    program = (
        "import sys\n"
        "import barnabas.runtime.logging\n"
        "loaded = 'rich' in sys.modules\n"
        "import rich.console\n"
        "print(loaded, rich.console.Console.__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "Console"]
