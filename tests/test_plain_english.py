"""The prose of the project names things with nouns. Words such as "nobody" and "what" are banned, because
they stand in place of a noun; so is "begin" in the place of "start".

The test reads Markdown outside of code, docstrings, comments, texts and test names of Python, and comments of
Cython, Go and Java.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

PROJECT = Path(__file__).resolve().parents[1]

CLEAN = (
    "benchmarks",
    "broker",
    "cli",
    "client",
    "coordinator",
    "docker",
    "docs",
    "examples",
    "pipeline",
    "protocol",
    "release",
    "runtime",
    "share",
    "storage",
    "testing",
    "tests/broker",
    "tests/cli",
    "tests/client",
    "tests/clients",
    "tests/conformance",
    "tests/containers",
    "tests/coordinator",
    "tests/differential",
    "tests/fuzz",
    "tests/pictures",
    "tests/pipeline",
    "tests/protocol",
    "tests/reference",
    "tests/release",
    "tests/runtime",
    "tests/share",
    "tests/simulation",
    "tests/storage",
)
"""The folders that are checked, with all folders below them."""

FILES_OF = (".", "tests")
"""The folders of which only the files directly in them are checked."""

BANNED = re.compile(
    r"\b(?:whoever|whatever|whichever|nobody|somebody|so many|of which|what|(?:the|its) begin)\b",
    re.IGNORECASE,
)
"""A sentence with `what` is allowed if it is a question and ends with a question mark."""

QUOTED: dict[str, str] = {}
"""Texts that must have a banned word, such as errors of Apache Kafka, each with its reason."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n\s*\n")
_MARKDOWN_CODE = re.compile(r"^(```|~~~).*?^\1|^(?: {4}|\t).*?$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_INLINE_CODE = re.compile(r"`[^`]*`")
_C_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|(//[^\n]*|/\*.*?\*/)', re.DOTALL)
_CYTHON_COMMENT = re.compile(r'"""(.*?)"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|(#[^\n]*)', re.DOTALL)


class Prose(NamedTuple):
    """A text, and the line at which it begins."""

    line: int
    text: str


def python_prose(source: str) -> Iterator[Prose]:
    """Docstrings, string literals with a space, names of tests, and comments of one or more lines."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield Prose(node.lineno, node.name.replace("_", " "))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield Prose(node.lineno, node.value)
    comment: list[str] = []
    first = last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if comment and token.start[0] != last + 1:
                yield Prose(first, " ".join(comment))
                comment = []
            first = first if comment else token.start[0]
            last = token.start[0]
            comment.append(token.string.lstrip("#: "))
    if comment:
        yield Prose(first, " ".join(comment))


def markdown_prose(source: str) -> Iterator[Prose]:
    """Everything except code blocks and inline code; their line ends remain."""
    yield Prose(1, _MARKDOWN_CODE.sub(lambda found: "\n" * found[0].count("\n"), source))


def cython_prose(source: str) -> Iterator[Prose]:
    return _comments(_CYTHON_COMMENT, source)


def c_prose(source: str) -> Iterator[Prose]:
    """Of Go and Java."""
    return _comments(_C_COMMENT, source)


def _comments(pattern: re.Pattern[str], source: str) -> Iterator[Prose]:
    for found in pattern.finditer(source):
        if found.lastindex:
            yield Prose(source.count("\n", 0, found.start()) + 1, found[found.lastindex])


READERS = {
    ".py": python_prose,
    ".md": markdown_prose,
    ".pyx": cython_prose,
    ".pxd": cython_prose,
    ".go": c_prose,
    ".java": c_prose,
}


def complaints(path: Path) -> Iterator[str]:
    """`path:line: the sentence` for each sentence with a banned word."""
    source = path.read_text(encoding="utf-8")
    if BANNED.search(source.replace("_", " ")) is None:
        return
    for prose in READERS[path.suffix](source):
        for line, sentence in _sentences(prose):
            if _is_banned(sentence):
                yield f"{path.relative_to(PROJECT)}:{line}: {' '.join(sentence.split())}"


def _sentences(prose: Prose) -> Iterator[tuple[int, str]]:
    start = 0
    for end in [*(found.start() for found in _SENTENCE_END.finditer(prose.text)), len(prose.text)]:
        sentence = prose.text[start:end]
        lead = len(sentence) - len(sentence.lstrip())
        yield prose.line + prose.text.count("\n", 0, start + lead), sentence
        start = end


def _is_banned(sentence: str) -> bool:
    if any(quoted in sentence for quoted in QUOTED):
        return False
    words = {found.lower() for found in BANNED.findall(_INLINE_CODE.sub("", sentence))}
    return bool(words - {"what"} if sentence.rstrip(" \"')*_").endswith("?") else words)


def checked_files(folder: str) -> list[Path]:
    found = (PROJECT / folder).rglob("*") if folder in CLEAN else (PROJECT / folder).glob("*")
    return sorted(path for path in found if path.suffix in READERS and path != Path(__file__).resolve())


@pytest.mark.parametrize("folder", [*CLEAN, *FILES_OF])
def test_prose_names_things_with_nouns(folder: str) -> None:
    found = [complaint for path in checked_files(folder) for complaint in complaints(path)]
    assert not found, "Rewrite these sentences with nouns:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("suffix", "source", "lines"),
    [
        (".py", '"""One.\n\nWhatever it is."""\n', [3]),
        (".py", "x = 1\n# What is\n# this?\n# Whichever one.\n", [2]),
        (".py", 'raise ValueError(f"nobody reads {1}")\n', [1]),
        (".py", "# Somebody reads it.\n", [1]),
        (".py", 'what = "what"\n', []),
        (".py", "def test_what_is_read() -> None: ...\n", [1]),
        (".py", '"""Which record, and what about `what` and its lock?"""\n', []),
        (".md", "What is it?\n\n    what\n\n`nobody`\n\n```\nwhoever\n```\nSo many\nthings.\n", [10]),
        (".java", 'int what; // what\nString s = "// what";\n/* a\n nobody */\n', [1, 3]),
        (".pyx", 'cdef what\n# of which\nx = "# what it is"\n', [2]),
    ],
)
def test_the_check_finds_prose_and_leaves_code(suffix: str, source: str, lines: list[int]) -> None:
    found = [
        line
        for prose in READERS[suffix](source)
        for line, sentence in _sentences(prose)
        if _is_banned(sentence)
    ]
    assert found == lines
