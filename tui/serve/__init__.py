"""The browser in a web page: ``backscroll serve``.

``gate`` decides who is let in, ``web`` answers requests, ``browsing`` runs one process for each
page, and ``page`` is that process. textual-serve gives the terminal of the page and the packets
between server and process.
"""
