"""`share.state.store=log`: delivery state as control records of each partition's own log (decision 1)."""
