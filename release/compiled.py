"""`python -m release.compiled FOLDER`: compiles the modules on the way of a record, beside their sources.

FOLDER has the package `barnabas`: site-packages, the contents of a wheel, or a copy. mypyc makes extension
modules of `MODULES`, from the same files that run interpreted, and Python prefers them. Tracebacks and
readers still use the sources. `release.artefacts` puts them into the native wheel, and the image has them.

It takes some minutes, a C compiler with Python's headers, and 1.2 GB of memory. Either all modules are
compiled or none is: classes in one C library find each other's attributes by their places in memory.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from release.errors import ReleaseError
from release.tools import run_quietly

MODULES: Final = {
    "broker": (
        "fetch/fetch_operation",
        "fetch/partition_fetch",
        "handlers/common/fetch_metadata_log",
        "handlers/common/interruptible_commit",
        "handlers/common/share_request",
        "handlers/fetch",
        "handlers/produce",
        "handlers/share_acknowledge",
        "handlers/share_fetch",
        "network/connection",
        "network/dispatch",
        "network/large_request",
        "network/outstanding",
        "network/request_metrics",
        "node/broker",
        "produce/inline_budget",
        "produce/preparation",
        "produce/produce_order",
        "produce/produced_records",
        "tracing/request_spans",
    ),
    "coordinator": ("metadata/leader_epoch", "metadata/partition_logs", "metadata/share_version"),
    "protocol": (
        "control_record",
        "decode/acknowledgements",
        "decode/fetch",
        "decode/produce",
        "decode/reader",
        "decode/share_acknowledge",
        "decode/share_fetch",
        "encode/fetch",
        "encode/produce",
        "encode/share_acknowledge",
        "encode/share_fetch",
        "frame",
        "header",
        "identity",
        "record_batch",
        "record_walk/shapes",
    ),
    "runtime": (
        "clock",
        "completion",
        "deadline_table",
        "deadlines",
        "metrics",
        "purgatory",
        "reserving_operation",
        "response_budget",
        "turns",
    ),
    "share": (
        "fetch/share_fetch",
        "fetch/share_fetch_operation",
        "leader/group_reader",
        "leader/handout",
        "leader/share_counts",
        "leader/share_partition_leader",
        "leader/share_partitions",
        "log_store/partition_state_store",
        "log_store/state_append",
        "partition/acknowledgement",
        "partition/acquisition",
        "partition/decision",
        "partition/keyed_order",
        "partition/record_order",
        "partition/share_partition",
        "partition/window",
        "sessions/acknowledgements",
        "sessions/session",
        "sessions/session_cache",
    ),
    "storage": (
        "format/control_runs",
        "format/offset_index",
        "format/share_image",
        "format/share_index",
        "format/time_index",
        "log/appender",
        "log/partition_log",
        "log/pending_append",
        "reading/read_errors",
        "reading/reader",
        "segments/segment",
        "segments/segments",
        "segments/stored_index",
        "share/share_state",
        "state/durability",
        "state/log_files",
        "state/log_state",
        "state/newest_batches",
    ),
}
"""The modules that a request for one record passes through, by package."""

_BUILD: Final = """
import sys
from setuptools import setup
from mypyc.build import mypycify

scratch, *paths = sys.argv[1:]
options = ["--config-file=", "--explicit-package-bases", "--ignore-missing-imports"]
modules = mypycify(
    [*options, f"--cache-dir={scratch}/mypy", *paths],
    only_compile_paths=paths,
    opt_level="1",
    debug_level="0",
    group_name="barnabas_compiled",
    target_dir=f"{scratch}/c",
)
arguments = ["--quiet", "build_ext", f"--build-lib={scratch}/lib", f"--build-temp={scratch}/build"]
setup(name="barnabas", packages=[], ext_modules=modules, script_args=arguments)
"""


def compile_modules(folder: Path, environment: Mapping[str, str] | None = None) -> int:
    """Adds the extension modules to `folder`, which has the package `barnabas`, and returns their number.

    `environment` has the variables of the tools (None: those of this process). Raises `ReleaseError`, and
    adds nothing, if one cannot be compiled.
    """
    paths = [f"barnabas/{package}/{module}.py" for package, modules in MODULES.items() for module in modules]
    with tempfile.TemporaryDirectory(prefix="barnabas-compiled-") as scratch:
        # A folder of its own: other packages beside `barnabas` would be taken for parts of it.
        sources = Path(scratch, "sources")
        shutil.copytree(folder / "barnabas", sources / "barnabas")
        command = [sys.executable, "-c", _BUILD, scratch, *paths]
        run_quietly(command, folder=sources, environment=environment, umask=0o022)
        built = sorted(path for path in Path(scratch, "lib").rglob("*") if path.is_file())
        if len(built) != len(paths) + 1:  # and the library that they share
            raise ReleaseError(f"{len(built) - 1} of {len(paths)} modules were compiled")
        for path in built:
            shutil.copy(path, folder / path.relative_to(scratch + "/lib"))
    return len(paths)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m release.compiled", description=__doc__)
    parser.add_argument("folder", type=Path, help="a folder with the package barnabas")
    folder = parser.parse_args().folder
    try:
        count = compile_modules(folder)
    except (OSError, ReleaseError) as error:
        print(f"release.compiled: {error}", file=sys.stderr)
        return 1
    print(f"{count} modules are compiled in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
