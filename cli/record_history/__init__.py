"""`barnabas explain`: the history of one record of a share group, from the control records in its log.

`directory` reads them without a broker, `events` leaves out those that change nothing, and `explanation` asks
the broker and prints.
"""
