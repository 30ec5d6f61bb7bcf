"""Pages of lists."""

from __future__ import annotations

import pytest

from barnabas.broker.http.api.pages import next_keys, number_in
from barnabas.broker.http.problem import Problem
from tests.broker.http.http_lab import open_http_lab


def test_pages_are_ascending_and_disjoint() -> None:
    keys = {"b", "a", "d", "c"}
    assert next_keys(keys, None, 3) == (["a", "b", "c"], True)
    assert next_keys(keys, "c", 3) == (["d"], False)
    assert next_keys(keys, "d", 3) == ([], False)
    assert next_keys(keys, None, 4) == (["a", "b", "c", "d"], False)


def test_a_page_continues_where_its_cursor_was_although_the_entry_is_gone() -> None:
    assert next_keys({("a", 1), ("a", 10), ("b", 0)}, ("a", 2), 5) == ([("a", 10), ("b", 0)], False)


@pytest.mark.parametrize("cursor", ["x", "-1", "1.5", "9" * 30, "٣٣x"])
def test_a_cursor_that_no_page_had_is_refused(cursor: str) -> None:
    with pytest.raises(Problem, match=r"There is no cursor"):
        number_in(cursor)


async def test_all_topics_are_on_the_pages_once() -> None:
    async with open_http_lab() as http:
        for index in range(5):
            await http.lab.create_topic(f"t{index}")
        names: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            page = await http.json(f"/api/v1/topics?limit=2&cursor={cursor}")
            names += [topic["name"] for topic in page["topics"]]
            cursor = page["next_cursor"]
        assert [name for name in names if not name.startswith("__")] == ["t0", "t1", "t2", "t3", "t4"]
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("limit", ["0", "1001", "-1", "x"])
async def test_a_page_has_a_bounded_size(limit: str) -> None:
    async with open_http_lab() as http:
        response = await http.get(f"/api/v1/topics?limit={limit}")
        assert response.status_code == 400
        assert "limit" in response.json()["detail"]
