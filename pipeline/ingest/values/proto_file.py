"""Compiles a .proto file and its imports, with the compiler in grpcio-tools."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from barnabas.pipeline.errors import OptionError, PipelineError, install_hint

COMPILE_SECONDS_MAX: Final = 60


def compiled(path: str) -> bytes:
    """The set of descriptors, imported ones first. Imports are found in the directory of the file.

    Raises `OptionError` with the compiler's message, `PipelineError` if there is no compiler.
    """
    if find_spec("grpc_tools") is None:
        raise PipelineError(f"A .proto file needs a compiler: {install_hint('schemas')}")
    with tempfile.TemporaryDirectory() as directory:
        output = Path(directory) / "descriptors"
        done = _run_compiler(Path(path).resolve(), output)
        if done.returncode != 0:
            raise OptionError("schema_file", f"{path}: {done.stderr.strip().splitlines()[0]}")
        return output.read_bytes()


def _run_compiler(path: Path, output: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={path.parent}"]
    command += ["--include_imports", f"--descriptor_set_out={output}", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=COMPILE_SECONDS_MAX)
