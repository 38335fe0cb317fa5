"""``python -m penstock``: the command line of this interpreter, whatever is on PATH."""

from __future__ import annotations

import sys

from penstock.cli import main

sys.exit(main())
