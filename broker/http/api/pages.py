"""Pages of lists: a bounded number of entries, and a cursor for the next page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import nsmallest
from http import HTTPStatus
from typing import Annotated, Final, TypeVar

from msgspec import Meta, Struct

from barnabas.broker.http.problem import Problem

PAGE_ENTRIES_MAX: Final = 1_000
PAGE_ENTRIES: Final = 100
"""The entries of a page if the request names no number."""

Limit = Annotated[int, Meta(ge=1, le=PAGE_ENTRIES_MAX, description="The most entries of the page.")]
Cursor = Annotated[str, Meta(description="The next_cursor of the page before; empty for the first page.")]


class PageQuery(Struct, forbid_unknown_fields=True):
    """The parameters of every list."""

    limit: Limit = PAGE_ENTRIES
    cursor: Cursor = ""


class Page(Struct, kw_only=True):
    """The fields of every list."""

    next_cursor: str | None
    """None on the last page."""


_KeyT = TypeVar("_KeyT", str, int, tuple[str, int])


def next_keys(keys: Iterable[_KeyT], after: _KeyT | None, limit: int) -> tuple[Sequence[_KeyT], bool]:
    """The first `limit` keys behind `after`, ascending, and whether more follow. Keys may come and go between
    two pages.
    """
    found = nsmallest(limit + 1, (key for key in keys if after is None or key > after))
    return found[:limit], len(found) > limit


def number_in(cursor: str) -> int | None:
    """The number in a cursor; None for the first page."""
    if not cursor:
        return None
    if not cursor.isdecimal() or len(cursor) > len(str(1 << 63)):
        raise Problem(HTTPStatus.BAD_REQUEST, f"There is no cursor {cursor}: use the next_cursor of a page.")
    return int(cursor)
