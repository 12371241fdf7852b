"""`python -m tokenglass` is the command `tokenglass`."""

import sys

from tokenglass.cli.main import main

sys.exit(main())
