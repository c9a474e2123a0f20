"""``python -m store.demo FILE`` fills an empty store with the demo's sessions."""

from __future__ import annotations

import sys
from pathlib import Path

from store.demo import fill_demo

if __name__ == "__main__":
    fill_demo(Path(sys.argv[1]))
