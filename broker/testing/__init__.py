"""The controls of a broker for tests: its clock, faults, and a reset. Only `barnabas testing` uses them."""
