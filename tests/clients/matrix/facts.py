"""What the matrix's programs in Python print."""

import json
from collections.abc import Callable, Iterable, Mapping

Facts = dict[str, int | bool]


def run_parts(parts: Mapping[str, Callable[[], Facts]], names: Iterable[str]) -> None:
    """Do the parts that are asked for, and say what came of each."""
    for name in names:
        print(json.dumps({"part": name, **parts[name]()}), flush=True)
