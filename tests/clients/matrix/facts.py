"""The output of the matrix's programs in Python."""

import json
from collections.abc import Callable, Iterable, Mapping

Facts = dict[str, int | bool]


def run_parts(parts: Mapping[str, Callable[[], Facts]], names: Iterable[str]) -> None:
    """Do the requested parts, and print the result of each."""
    for name in names:
        print(json.dumps({"part": name, **parts[name]()}), flush=True)
