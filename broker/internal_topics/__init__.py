"""The topics in which the coordinators keep their records, with the coordinators over them."""
