"""The parts of the documentation that are made from the code: `python -m tests.reference` writes them."""
