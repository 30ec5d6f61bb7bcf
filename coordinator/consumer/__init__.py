"""Consumer groups of the new protocol (KIP-848): the coordinator assigns, and members follow by heartbeats.

A group's epoch grows with each change of its members, their subscriptions or the topics; a target assignment
is computed for it; each member is led there step by step, giving up partitions before others get them.
`consumer_group` is a group as the log has it, `heartbeat` decides what a member's heartbeat changes,
`reconciliation` a member's next step, `membership` runs the operations and their timers. `classic_members`
serves members of the classic protocol in such a group, `migration` turns a group of one protocol into one of
the other. `offsets` says who may commit in the group's name. `coordinator` is the way in.
"""
