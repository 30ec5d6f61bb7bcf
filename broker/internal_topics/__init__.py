"""The topics in which the coordinators keep their records, and the coordinators at work over them."""
