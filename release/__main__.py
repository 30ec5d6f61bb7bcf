"""`python -m release`: build the tracked files of this checkout into `dist/`, or into `--out`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from release.artefacts import build
from release.build_facts import write_facts
from release.console import build_console, console_libraries
from release.errors import ReleaseError
from release.software_bill import write_bill
from release.source_tree import copy_tracked_files, source_date_epoch

PROJECT = Path(__file__).resolve().parents[1]

_FILES = ("barnabas-*.cdx.json", "barnabas-*.tar.gz", "barnabas-*.whl", "SHA256SUMS", "build-facts.json")
"""All files of a release."""


def main() -> int:
    options = _parser().parse_args()
    try:
        _release(options.out.resolve())
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    for path in sorted(options.out.iterdir()):
        print(f"{path.stat().st_size:>10,}  {path}")
    return 0


def _release(out: Path) -> None:
    epoch = source_date_epoch(PROJECT)
    _remove_earlier_release(out)
    with tempfile.TemporaryDirectory(prefix="barnabas-release-") as scratch:
        source = copy_tracked_files(PROJECT, Path(scratch) / "source")
        build_console(source)
        built = build(source, Path(scratch), out, epoch)
        bill = write_bill(
            built.native_wheel, console_libraries(source), source / "pyproject.toml", Path(scratch), out
        )
    write_facts(PROJECT, epoch, [built.sdist, built.native_wheel, built.pure_wheel, bill], out)


def _remove_earlier_release(out: Path) -> None:
    """Only the files of a release: the folder may be one that has others."""
    out.mkdir(parents=True, exist_ok=True)
    for pattern in _FILES:
        for path in out.glob(pattern):
            path.unlink()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    parser.add_argument(
        "--out",
        type=Path,
        default=PROJECT / "dist",
        help="folder for the files; an earlier release in it is removed",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
