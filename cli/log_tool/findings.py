"""The findings of `verify`: problems, and notes about unusual but valid things."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.cli.printing import Row


class Finding(NamedTuple):
    """One finding, with its file, and its position and offset if they matter."""

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
