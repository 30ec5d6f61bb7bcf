"""ListGroups' handler. Filters and the fields of a group are in tests/conformance."""

from __future__ import annotations

from tests.conformance.harness import open_lab
from tests.conformance.share_member import ShareMember


async def test_without_groups_the_list_is_empty() -> None:
    async with open_lab() as lab:
        response = await lab.admin.ask("list_groups")
        assert (response.error_code, response.groups) == (0, ())


async def test_all_groups_are_listed() -> None:
    async with open_lab() as lab:
        names = [f"group-{number}" for number in range(20)]
        for name in names:
            await ShareMember(lab.client(), group_id=name).join("t")
        response = await lab.admin.ask("list_groups")
        assert sorted(group.group_id for group in response.groups) == sorted(names)
