"""Statistics: what sessions spent, called and took, by time, model, workspace and more.

``statistics`` is what screens and commands read. ``facts`` counts one session, ``tables`` holds
the counts of all, and ``rollups`` opens them: from the sidecar file that ``keeping`` keeps up to
date, or counted now.
"""
