"""Each command line of `barnabas` in the documentation is one that its parser accepts.

`tests/clients/test_command_line_page.py` and others run the commands of their pages; this test only parses,
and so it can read all pages. In a sentence the name of a command is enough: `barnabas topics create`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from barnabas.__main__ import command_parser

PROJECT = Path(__file__).resolve().parents[1]
PAGES = sorted([PROJECT / "README.md", *PROJECT.glob("docs/**/*.md")])

_CODE_LINE = re.compile(r"^ {4,}(.*\bbarnabas .*)$", re.MULTILINE)
_INLINE = re.compile(r"`(barnabas [^`]+)`")
_START = re.compile(r"(?:\$ |\.venv/bin/|[A-Z_]+=\S+ |^)barnabas (.*)")
_END = re.compile(r"\s(?:\||&&|#|;|>|<)\s.*|\s{2,}.*| &$")
_PLACEHOLDERS = {"N": "1", "PORT": "9092", "HOST:PORT": "host:9092", "SECONDS": "5", "DURATION": "5s"}
"""The values of placeholders that are no words."""


def commands(page: Path) -> Iterator[str]:
    """The arguments of each command on the page, by the notation of manuals: `[--option]`, `a|b`, `...`."""
    text = page.read_text(encoding="utf-8")
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        for code in (*_CODE_LINE.findall(line), *_INLINE.findall(line)):
            for part in re.split(r" (?:\||&&) |\$\(", code):
                found = _START.match(part.strip())
                if found is not None:
                    yield _END.sub("", found[1]).rstrip(")\"'`")


def alternatives(command: str) -> Iterator[list[str]]:
    """The command's arguments, once for each of the names that `a|b` stands for."""
    plain = re.sub(r"\[[^\]]*\]\S*|\.\.\.", "", command)
    first, *rest = shlex.split(plain)
    if rest and "|" in rest[0]:
        for name in rest[0].split("|"):
            yield [first, name, *rest[1:]]
    else:
        yield [first, *rest]


@cache
def is_accepted(arguments: tuple[str, ...]) -> bool:
    try:
        command_parser().parse_args([_PLACEHOLDERS.get(one, one) for one in arguments])
    except SystemExit as end:
        return end.code == 0
    return True


def is_name(arguments: tuple[str, ...]) -> bool:
    """Whether they are the name of a command, with or without an action."""
    name, *actions = arguments
    if len(actions) > 1 or not is_accepted((name, "--help")):
        return False
    has_actions = not is_accepted((name, "no-such-action", "--help"))
    return not actions or (has_actions and is_accepted((name, *actions, "--help")))


def are_options_of_a_command(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> bool:
    """Whether they are the name of a command and options of it, without values."""
    name = tuple(one for one in arguments if not one.startswith("--"))
    capsys.readouterr()
    if not name or not is_name(name):
        return False
    with pytest.raises(SystemExit):
        command_parser().parse_args([*name, "--help"])
    explained = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    return set(arguments[len(name) :]) <= explained


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(PROJECT)))
def test_the_parser_accepts_every_command_of_the_page(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = [
        " ".join(("barnabas", *arguments))
        for command in commands(page)
        for arguments in map(tuple, alternatives(command))
        if not is_name(arguments)
        and not is_accepted(arguments)
        and not are_options_of_a_command(arguments, capsys)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("command", "is_known"),
    [
        ("share inspect", False),
        ("inspect GROUP", True),
        ("topics create", True),
        ("topics make", False),
        ("topics create orders --partitons 3", False),
        ("nonsense", False),
    ],
)
def test_a_wrong_command_is_found(command: str, is_known: bool) -> None:
    arguments = tuple(shlex.split(command))
    assert (is_name(arguments) or is_accepted(arguments)) == is_known
