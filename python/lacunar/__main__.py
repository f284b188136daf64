"""`python -m lacunar` is the `lacunar` command."""

import sys

from lacunar.cli import main

sys.exit(main())
