"""The identity that a member sends."""

from typing import NamedTuple


class MemberIdentity(NamedTuple):
    """A member by its id, and by its instance id if it is a static one. An administrator names a static
    member without its member id, which is empty then.
    """

    member_id: str
    group_instance_id: str | None

    @property
    def is_nobody(self) -> bool:
        """Whether no member is named."""
        return not self.member_id and self.group_instance_id is None
