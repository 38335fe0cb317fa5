"""``python -m penstock``: the command line of this interpreter, independent of PATH."""

from __future__ import annotations

import sys

from penstock.cli import main

sys.exit(main())
