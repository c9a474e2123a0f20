"""What a user does to sessions: fork, rewind, archive and the rest, each undone by one call.

Every verb is a synchronous function that takes a ``Database`` and runs inside one write
transaction: ``await store.write(fork, session_id, message_id, ...)``. Each refuses with
``Refused`` (the reason) or ``NotFound``, and leaves one entry in the verb log.
"""
