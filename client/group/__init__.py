"""Groups: the parts that both consumers have, and requests for the positions of a group."""
