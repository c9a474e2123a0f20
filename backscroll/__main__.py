"""``python -m backscroll`` runs the command."""

from __future__ import annotations

import sys

from backscroll import main

if __name__ == "__main__":
    sys.exit(main())
