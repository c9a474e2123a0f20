"""What the terminal gets: the cells that changed, no faster than it takes them.

Textual writes whole strips: a key that moves the cursor of the list sends 20 kB, a spinner 13 kB
for each turn, and what the terminal has not taken waits in a queue. ``cells`` keeps what each
cell shows and what it should show, ``output`` decides what is sent when, and ``driver`` puts
both between Textual and the terminal.
"""
