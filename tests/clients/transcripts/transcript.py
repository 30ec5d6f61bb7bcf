"""Transcripts of Kafka's command line tools: the commands of a person, and their output.

The files beside this module are read and written here. Their lines are

# a comment
    @ something that a test does, such as opening a consumer
    $ a command
    > a line of its standard input, or of a file that an action makes
        a line that it prints on Apache Kafka
      here: why this broker's answer is another
        a line that it prints here

Without `here:` both print the same. An exit code that isn't 0 is a last line of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

DIRECTORY = Path(__file__).resolve().parent

_LOOKS = {
    "--list",
    "--describe",
    "list",
    "describe",
    "describe-producers",
    "kafka-get-offsets",
    "kafka-groups",
}
"""The words of commands that change nothing."""
_PRINTED, _HERE = "    ", "  here: "


@dataclass
class Step:
    """A command or an action, with the comments before it."""

    line: str
    comments: list[str] = field(default_factory=list[str])
    stdin: list[str] = field(default_factory=list[str])
    kafka: list[str] = field(default_factory=list[str])
    """The output on Apache Kafka."""
    reason: str | None = None
    here: list[str] = field(default_factory=list[str])
    """The output on Barnabas, if there is a reason for a difference."""

    @property
    def is_command(self) -> bool:
        return self.line.startswith("$ ")

    @property
    def only_looks(self) -> bool:
        """Whether it is a command that changes nothing."""
        return self.is_command and not _LOOKS.isdisjoint(self.line.split())

    @property
    def text(self) -> str:
        """The line without its sign."""
        return self.line[2:]

    @property
    def expected(self) -> list[str]:
        """The expected output on Barnabas."""
        return self.kafka if self.reason is None else self.here

    def lines(self) -> Iterator[str]:
        yield from self.comments
        yield self.line
        yield from (f"> {line}".rstrip() for line in self.stdin)
        yield from (_PRINTED + line for line in self.kafka)
        if self.reason is not None:
            yield _HERE + self.reason
            yield from (_PRINTED + line for line in self.here)


def names() -> list[str]:
    """The names of all transcripts."""
    return sorted(path.stem for path in DIRECTORY.glob("*.txt"))


def read(name: str) -> list[Step]:
    """A transcript's steps, in order."""
    steps: list[Step] = []
    comments: list[str] = []
    for line in _path(name).read_text(encoding="utf-8").splitlines():
        if line.startswith(("$ ", "@ ")):
            steps.append(Step(line, comments))
            comments = []
        elif line.startswith(_HERE):
            steps[-1].reason = line.removeprefix(_HERE)
        elif line.startswith(_PRINTED):
            step = steps[-1]
            (step.kafka if step.reason is None else step.here).append(line.removeprefix(_PRINTED))
        elif line.startswith(">"):
            steps[-1].stdin.append(line[2:])
        else:
            comments.append(line)
    return steps


def write(name: str, steps: Sequence[Step]) -> None:
    """Replace a transcript."""
    lines = [line for step in steps for line in step.lines()]
    _path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _path(name: str) -> Path:
    return DIRECTORY / f"{name}.txt"
