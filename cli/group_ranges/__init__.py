"""The ranges that a group has committed individually and the members that share its partitions.

`query` asks a running broker, as a client does. `report` prints the answer.
"""
