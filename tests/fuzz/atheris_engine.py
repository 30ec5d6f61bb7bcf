"""One target fed by Atheris for some seconds: `python -m tests.fuzz.atheris_engine TARGET SECONDS DIRECTORY`.

A process of its own, because Atheris ends its process; the instrumented modules are imported here.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import structlog

atheris: Any = import_module("atheris")
"""By name, because it is installed only for `make fuzz`."""

with atheris.instrument_imports(include=["barnabas"]):
    from tests.fuzz.targets import SEEDS, TARGETS


def main(name: str, seconds: str, directory: str) -> None:
    """Bytes that find a bug are left in `directory`, and the corpus in a folder of it."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("critical"))
    corpus = Path(directory) / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(SEEDS.get(name, [])):
        (corpus / f"seed-{number}").write_bytes(seed)
    options = [f"-max_total_time={seconds}", "-verbosity=0", "-print_final_stats=1"]

    def feed(data: bytes) -> None:
        TARGETS[name](data)  # Atheris wants no result

    atheris.Setup([sys.argv[0], *options, f"-artifact_prefix={directory}/", str(corpus)], feed)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
