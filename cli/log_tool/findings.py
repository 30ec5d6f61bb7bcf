"""What `verify` finds: a problem, or a note about something that is unusual and may well be."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.cli.log_tool.printing import Row


class Finding(NamedTuple):
    """One line of the outcome: in which file, at which position and offset (None if that says nothing)."""

    file: str
    message: str
    position: int | None = None
    offset: int | None = None
    is_problem: bool = True

    def as_row(self) -> Row:
        return {
            "type": "problem" if self.is_problem else "note",
            "file": self.file,
            "position": self.position,
            "offset": self.offset,
            "message": self.message,
        }

    def as_line(self) -> str:
        place = [self.file]
        if self.position is not None:
            place.append(f"position {self.position}")
        if self.offset is not None:
            place.append(f"offset {self.offset}")
        return f"{'' if self.is_problem else 'note: '}{', '.join(place)}: {self.message}"
