"""Search over everything in a store: words, files, commands and errors, with counts.

``text`` is the one rule for what of a part is searched, ``hits`` are the results, and
``searching`` finds them. ``index`` only names candidates: every hit is verified in the rows.
All texts here are as the sessions hold them, escapes included; whoever draws or prints them
neutralises them.
"""
