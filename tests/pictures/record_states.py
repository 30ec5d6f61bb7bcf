"""The picture of the states of a record in docs/concepts.md: each arrow is a change that the share-partition
has made to a record.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

from barnabas.protocol.record_inspection import DescribedState
from barnabas.share.partition.inspection import InspectionBounds
from tests.share.partition.leader import ACCEPT, LIMITS, REJECT, RELEASE, RENEW, Leader

PICTURE: Final = Path(__file__).parents[2] / "docs" / "pictures" / "record-states.svg"

_MEMBER: Final = "member-1"
_RECORD: Final = 1
"""The record in the picture. Record 0 stays in flight, so that the start offset does not pass record 1."""

State = DescribedState
Event = Callable[[Leader], object]


def _acknowledge(ack_type: int) -> Event:
    return lambda leader: leader.acknowledge(_RECORD, _RECORD, ack_type)


EVENTS: Final[Mapping[str, Event]] = {
    "accept": _acknowledge(ACCEPT),
    "reject": _acknowledge(REJECT),
    "release": _acknowledge(RELEASE),
    "lock expires": lambda leader: leader.record(leader.expire(LIMITS.lock_duration_ms)),
    "consumer leaves": lambda leader: leader.record(leader.release_member()),
    "renew": _acknowledge(RENEW),
}
"""The events that may happen to a record that a member holds."""

Changes = Mapping[tuple[State, State], list[str]]


def changes() -> Changes:
    """The events that change a record from one state to another, as the share-partition carries them out."""
    found: dict[tuple[State, State], list[str]] = defaultdict(list)
    found[State.AVAILABLE, _state(_held(1))].append("fetch")
    for name, event in EVENTS.items():
        usual, at_limit = (_result(count, event) for count in (1, LIMITS.delivery_count_max))
        found[State.ACQUIRED, usual].append(name)
        if at_limit is not usual:
            found[State.ACQUIRED, at_limit].append(f"{name}, at the delivery limit")
    return found


def _held(delivery_count: int) -> Leader:
    """A share-partition whose member holds the record, in its delivery of that number."""
    leader = Leader().produce(2)
    leader.fetch(_MEMBER)
    for _ in range(delivery_count - 1):
        leader.acknowledge(_RECORD, _RECORD, RELEASE)
        leader.fetch(_MEMBER)
    return leader


def _result(delivery_count: int, event: Event) -> State:
    leader = _held(delivery_count)
    event(leader)
    return _state(leader)


def _state(leader: Leader) -> State:
    bounds = InspectionBounds(_RECORD, 0, leader.log_end_offset, leader.log_end_offset)
    return next(leader.partition.inspect(leader.limits, bounds)).state


class _Box(NamedTuple):
    """A state in the picture: its place and its colour."""

    x: int
    y: int
    colour: str


_WIDTH, _HEIGHT, _LINE = 150, 50, 17
_BOXES: Final[Mapping[State, _Box]] = {
    State.AVAILABLE: _Box(20, 150, "#4c78a8"),
    State.ACQUIRED: _Box(380, 150, "#f58518"),
    State.ACKNOWLEDGED: _Box(760, 60, "#54a24b"),
    State.ARCHIVED: _Box(760, 240, "#888888"),
}


def svg() -> str:
    """The picture, on white, so that it can be read on dark pages, too."""
    head = (
        '<marker id="end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    )
    size = 'viewBox="0 0 930 350" width="930" height="350"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="13" role="img">',
        "<title>The states of a record in a share group</title>",
        f'<defs>{head}<path d="M0 0 L8 4 L0 8 z" fill="#222222"/></marker></defs>',
        '<rect width="930" height="350" fill="#ffffff"/>',
    ]
    for (before, after), events in changes().items():
        parts += _arrow(before, after, events)
    for state, box in _BOXES.items():
        parts.append(
            f'<rect x="{box.x}" y="{box.y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6" fill="{box.colour}"/>'
        )
        parts.append(_text(box.x + _WIDTH / 2, box.y + 31, state.name.capitalize(), "#ffffff"))
    return "\n".join([*parts, "</svg>", ""])


def _arrow(before: State, after: State, events: list[str]) -> list[str]:
    """The arrow between two boxes, with its events; KeyError for a change without a place in the picture."""
    path, x, y = _PLACES[before, after]
    labels = [_text(x, y + _LINE * row, event, "#222222") for row, event in enumerate(events)]
    line = f'<path d="{path}" fill="none" stroke="#222222" stroke-width="1.5" marker-end="url(#end)"/>'
    return [line, *labels]


_PLACES: Final[Mapping[tuple[State, State], tuple[str, int, int]]] = {
    (State.AVAILABLE, State.ACQUIRED): ("M170 162 L380 162", 275, 154),
    (State.ACQUIRED, State.AVAILABLE): ("M380 188 L170 188", 275, 206),
    (State.ACQUIRED, State.ACQUIRED): ("M425 150 C 425 90, 485 90, 485 150", 455, 96),
    (State.ACQUIRED, State.ACKNOWLEDGED): ("M530 162 L760 95", 640, 112),
    (State.ACQUIRED, State.ARCHIVED): ("M530 188 L760 255", 610, 256),
}
"""The path of each arrow, and the place of its first label."""


def _text(x: float, y: float, text: str, colour: str) -> str:
    return f'<text x="{x}" y="{y}" fill="{colour}" text-anchor="middle">{escape(text)}</text>'


if __name__ == "__main__":
    PICTURE.write_text(svg(), encoding="utf-8")
