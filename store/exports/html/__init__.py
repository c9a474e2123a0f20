"""``--to html``: sessions as one page that needs nothing else, opened from a file.

``page.py`` writes the page, ``parts.py`` a message's parts, ``prose.py`` Markdown; ``page.css`` and
``page.js`` are its style and its script. The page is readable without the script. All text goes
through ``markup.py``; the page's policy allows its own style and script by their hashes, pictures
within the page, and nothing else.
"""
