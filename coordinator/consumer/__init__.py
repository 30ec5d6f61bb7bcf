"""Consumer groups of the new protocol (KIP-848): the coordinator assigns, and members follow by heartbeats.

A group's epoch grows with each change of its members, their subscriptions or the topics. A target assignment
is computed for the epoch, and each member reaches it step by step: it gives up partitions before other
members get them. `consumer_group` is a group as the log has it, `heartbeat` checks a request, `member_change`
decides on its records, `reconciliation` on a member's next step; `membership` runs the operations and their
timers. `classic_members` serves members of the classic protocol in such a group, `migration` turns a group of
one protocol into one of the other. `offsets` has the rules for commits. `coordinator` is the entry point.
"""
