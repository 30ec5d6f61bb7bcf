"""The output of a command: its result on standard output, all else on standard error.

With `--json` the result is one JSON object; without, lines for people. A user who sends the result to a file
still sees the progress.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TextIO

from barnabas.pipeline.cli.progress import Progress

if TYPE_CHECKING:
    from argparse import Namespace


class Console:
    """The two outputs of one command."""

    def __init__(self, *, as_json: bool, quiet: bool, output: TextIO, errors: TextIO) -> None:
        self._as_json = as_json
        self._quiet = quiet
        self._output = output
        self._errors = errors

    @classmethod
    def of(cls, options: Namespace) -> Console:
        """The outputs of this process, with the arguments `--json` and `--quiet`."""
        return cls(as_json=options.json, quiet=options.quiet, output=sys.stdout, errors=sys.stderr)

    def note(self, text: str) -> None:
        """Prints one line for the user, such as a part that was left out."""
        print(f"barnabas: {text}", file=self._errors, flush=True)

    def progress(self, title: str, *, total: int | None = None, unit: str = "records") -> Progress:
        """A progress bar, as a context manager. `total` is None if it is unknown."""
        return Progress(title, total=total, unit=unit, output=None if self._quiet else self._errors)

    def result(self, values: Mapping[str, object], lines: Iterable[str]) -> None:
        """Prints the result: `values` with `--json`, else `lines`. Call it once, at the end."""
        if self._as_json:
            print(json.dumps(values, ensure_ascii=False), file=self._output, flush=True)
            return
        for line in lines:
            print(line, file=self._output)
        self._output.flush()
