"""The parsers inside a parser: the commands of `barnabas`, and the actions of a command."""

from __future__ import annotations

import argparse
from typing import Any, cast

from barnabas.cli.commands.completing import FillingParser


def parsers_in(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """By name, the parsers of a parser's commands or actions; none if it has no such level."""
    cast("FillingParser", parser).fill()
    found: dict[str, argparse.ArgumentParser] = {}
    for one in parser._actions:
        choices: object = cast("Any", one).choices
        if isinstance(choices, dict):
            found |= cast("dict[str, argparse.ArgumentParser]", choices)
    return found
