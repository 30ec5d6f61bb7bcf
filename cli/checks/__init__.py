"""The checks of `barnabas doctor`: this machine before a broker starts, and a broker as a client sees it.

Each check returns one or more `Finding`s; a failure is a finding, never an exception.
"""
