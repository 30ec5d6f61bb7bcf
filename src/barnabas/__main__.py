"""`python -m barnabas` is the same as `barnabas`."""

import sys

from barnabas.broker.cli import main

sys.exit(main())
