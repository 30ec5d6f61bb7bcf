"""`barnabas share`: shows the records of a share group in their states, and changes single ones.

`inspecting` and `changing` ask a broker, `report` prints.
"""
