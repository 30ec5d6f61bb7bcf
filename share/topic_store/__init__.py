"""`share.state.store=topic`: delivery state in `__share_group_state` (decision 9)."""
