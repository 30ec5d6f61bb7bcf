"""Who a member of a group says that it is."""

from typing import NamedTuple


class MemberIdentity(NamedTuple):
    """A member by its id, empty for nobody, and its instance id if it is a static one; an administrator names
    a static member without its member id."""

    member_id: str
    group_instance_id: str | None

    @property
    def is_nobody(self) -> bool:
        """Whether no member is named."""
        return not self.member_id and self.group_instance_id is None
