"""The messages that handlers speak: one module per API, with kio's classes of that API's shapes.

A shape is the version that `codec` lifts requests to and lowers responses from: an API's newest, or two
where its structure changed. A module is imported by its handler alone, since kio's classes take long to
load. Two notes hold for all of them: a topic id of None is the one that is all zeros, and a request's
nested structures may be of another version's class, alike in every field. The responses of Produce, Fetch,
ShareFetch and ShareAcknowledge are not here but in `encode`.
"""
