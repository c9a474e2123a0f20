"""``python -m tui.serve.page``: the browser of one web page, started by ``backscroll serve``.

It takes the arguments of ``backscroll`` without a command. Its standard input and output are the
packets of textual-serve; it ends when its standard input does, however the server ended.
"""

from __future__ import annotations

import sys

from store.system.streams import guard_streams
from tui.browser import browse, browser_request
from tui.kit.glyphs import ascii_only


def main() -> int:
    """Run the browser and return its exit code."""
    guard_streams(ascii_only)
    request = browser_request(sys.argv[1:])
    if request is None or request.problem is not None:
        print("backscroll: this module is started by backscroll serve", file=sys.stderr)
        return 2
    return browse(request, in_page=True)


if __name__ == "__main__":
    sys.exit(main())
