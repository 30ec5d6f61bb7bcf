"""Completes command lines in a shell, by argcomplete.

At each press of TAB the shell's script runs `barnabas` with `_ARGCOMPLETE` and the line in `COMP_LINE`. The
answer is made of the parsers of the commands; names of topics and groups are asked from the broker, with a
short time limit. `barnabas completion` prints the scripts.
"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from argcomplete import autocomplete
from argcomplete.completers import FilesCompleter, SuppressCompleter
from argcomplete.shell_integration import shellcode

from barnabas.cli.commands.connecting import target_of

if TYPE_CHECKING:
    from barnabas.client.admin.connection import AdminConnection

ASK_SECONDS: Final = 1.0
"""How long the shell waits for names from the broker."""

_FILES: Final = frozenset({"FILE", "PATH"})
"""The metavars of arguments that name files."""


class FillingParser(Protocol):
    """A parser whose arguments are added at its first use."""

    def fill(self) -> None: ...


def script(shell: str) -> str:
    """The script that the shell must run once, such as from its start-up file."""
    code: str = shellcode(["barnabas"], shell=shell)
    return code


def complete(parser: argparse.ArgumentParser) -> None:
    """Print the completions of the line in the environment, and end the process."""
    _fill(parser, _words(os.environ.get("COMP_LINE", "")))
    autocomplete(parser, default_completer=SuppressCompleter())


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)[1:]
    except ValueError:  # an open quote
        return line.split()[1:]


def _fill(parser: argparse.ArgumentParser, words: list[str]) -> None:
    """Add the arguments of the parsers on the way to the line's command, and their completers.

    The completion looks at the arguments before they are parsed.
    """
    if hasattr(parser, "fill"):
        cast("FillingParser", parser).fill()
    for action in parser._actions:
        choices: object = cast("Any", action).choices
        if isinstance(choices, dict):
            parsers = cast("dict[str, argparse.ArgumentParser]", choices)
            for number, word in enumerate(words):
                if word in parsers:
                    _fill(parsers[word], words[number + 1 :])
                    break
        elif completer := _completer(action):
            cast("Any", action).completer = completer


def _completer(action: argparse.Action) -> Callable[..., Any] | None:
    match action.metavar:
        case "TOPIC" | "TOPIC[:PARTITION]":
            return _topics
        case "GROUP":
            return _groups
        case name if name in _FILES:
            return FilesCompleter()
        case _:
            return None


def _topics(parsed_args: argparse.Namespace, **_: object) -> list[str]:
    async def names(admin: AdminConnection) -> list[str]:
        return [topic.name for topic in await admin.topics.find_all()]

    return _ask(parsed_args, names)


def _groups(parsed_args: argparse.Namespace, **_: object) -> list[str]:
    async def names(admin: AdminConnection) -> list[str]:
        from barnabas.client.admin.groups import list_groups

        return [group.group_id for group in await list_groups(admin)]

    return _ask(parsed_args, names)


def _ask(
    options: argparse.Namespace, names: Callable[[AdminConnection], Coroutine[Any, Any, list[str]]]
) -> list[str]:
    """The names; none if no broker answers in time, because a completion must not fail."""
    import asyncio

    from barnabas.protocol.lean_import import import_kio_without_hypothesis

    import_kio_without_hypothesis()
    from barnabas.client.errors import ConsumerError

    async def ask() -> list[str]:
        async with asyncio.timeout(ASK_SECONDS), target_of(options).administer() as admin:
            return await names(admin)

    try:
        return asyncio.run(ask())
    except (ConsumerError, TimeoutError, ValueError):
        return []
