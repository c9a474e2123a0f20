"""Tables of library files beside the contract's."""

from __future__ import annotations

VERB_LOG = """CREATE TABLE verb_log (
    seq                 INTEGER PRIMARY KEY AUTOINCREMENT,
    verb                TEXT NOT NULL,
    session_id          TEXT NOT NULL,
    summary             TEXT NOT NULL,
    edits_json          TEXT NOT NULL,
    created_session     TEXT,
    created_fingerprint TEXT,
    state               TEXT NOT NULL,
    logged_at           INTEGER NOT NULL
)"""
"""Changes for undo and redo; for a host's file the table is in a separate file beside it."""

READING_STATES = """
CREATE TABLE reading_states (
    id         INTEGER PRIMARY KEY,
    kind       TEXT NOT NULL,
    root       TEXT NOT NULL,
    key        TEXT NOT NULL,
    state_json TEXT NOT NULL,
    context    BLOB NOT NULL,
    UNIQUE (kind, root, key)
);
CREATE TABLE reading_names (
    reading INTEGER NOT NULL REFERENCES reading_states(id) ON DELETE CASCADE,
    bucket  INTEGER NOT NULL,
    hashes  BLOB NOT NULL,
    PRIMARY KEY (reading, bucket)
);
"""
"""State for continuing to read a long file where the last sync stopped.

``reading_states``: ``state_json`` is described in ``store.sync.reading_states``; ``context``
has the earlier records that are needed to read later ones, compressed with zstd.
``reading_names``: hashes, eight bytes each, of the ids that earlier records of the file
define, sorted into buckets by their last byte.
"""

OUTLINES = """
CREATE TABLE outlines (
    session_id TEXT PRIMARY KEY,
    kind       TEXT NOT NULL,
    root       TEXT NOT NULL,
    key        TEXT NOT NULL
);
CREATE INDEX outlines_unit ON outlines(kind, root, key);
"""
"""Sessions that are listed before their unit was read (``store.sync.outlines``)."""

SIDE_TABLES = """
CREATE TABLE system_prompts (
    digest TEXT PRIMARY KEY,
    body   TEXT NOT NULL
);
CREATE TABLE source_units (
    kind        TEXT NOT NULL,
    root        TEXT NOT NULL,
    key         TEXT NOT NULL,
    session_id  TEXT,
    stamp_json  TEXT NOT NULL,
    synced_at   INTEGER NOT NULL,
    PRIMARY KEY (kind, root, key)
);
CREATE INDEX source_units_session ON source_units(session_id);
CREATE TABLE source_problems (
    kind   TEXT NOT NULL,
    root   TEXT NOT NULL,
    unit   TEXT NOT NULL,
    path   TEXT NOT NULL,
    line   INTEGER NOT NULL DEFAULT 0,
    reason TEXT NOT NULL,
    seen_at INTEGER NOT NULL,
    PRIMARY KEY (kind, root, unit, path, line, reason)
);
CREATE TABLE session_links (
    session_id        TEXT PRIMARY KEY REFERENCES chat_sessions(id) ON DELETE CASCADE,
    kind              TEXT NOT NULL,
    parent_id         TEXT NOT NULL,
    parent_message    TEXT,
    pending           INTEGER NOT NULL
);
CREATE INDEX session_links_parent ON session_links(parent_id);
CREATE TABLE exported_sessions (
    imported_id TEXT PRIMARY KEY,
    session_id  TEXT NOT NULL REFERENCES chat_sessions(id) ON DELETE CASCADE
);
CREATE TABLE forgotten_sessions (
    session_id   TEXT PRIMARY KEY,
    forgotten_at INTEGER NOT NULL
);
CREATE TABLE original_records (
    session_id TEXT NOT NULL REFERENCES chat_sessions(id) ON DELETE CASCADE,
    first      INTEGER NOT NULL,
    count      INTEGER NOT NULL,
    checksum   INTEGER NOT NULL,
    body       BLOB NOT NULL,
    PRIMARY KEY (session_id, first)
);
CREATE TABLE record_refs (
    message_id   TEXT PRIMARY KEY REFERENCES chat_messages(id) ON DELETE CASCADE,
    records_json TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE attachments (
    session_id TEXT NOT NULL REFERENCES chat_sessions(id) ON DELETE CASCADE,
    name       TEXT NOT NULL,
    media_type TEXT NOT NULL,
    size       INTEGER NOT NULL,
    body       BLOB NOT NULL,
    PRIMARY KEY (session_id, name)
);
CREATE TABLE live_activity (
    session_id   TEXT PRIMARY KEY,
    kind         TEXT NOT NULL,
    root         TEXT NOT NULL,
    state        TEXT NOT NULL,
    since        INTEGER NOT NULL,
    process_json TEXT NOT NULL,
    watcher_json TEXT NOT NULL,
    seen_at      INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE changes (
    seq        INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL,
    message_id TEXT,
    changed_at INTEGER NOT NULL
);
"""
"""Tables of every library file beside the contract's.

``source_units``: units that sync has read, with the stamps of their files at that time.
``source_problems``: ``unit`` is the key of the unit that was read, empty for problems of
listing a root.
``session_links``: the parent of an imported session, by the id that it has or will have;
``pending`` is 1 while part of the parent is missing.
``exported_sessions``: the id that an exported file's session will have when it is imported,
and the session that was exported.
``original_records``: a session's source records in order, in zstd blocks of lines joined
by newlines; ``first`` is the number of the block's first record, from 0; ``checksum`` is
the CRC-32 of the block before compression.
``record_refs``: for each message, a JSON array with one array of record numbers per part
(and a last one for records of the message as a whole).
``attachments``: side files of a source, zstd; ``size`` in bytes before compression.
``live_activity``: the current activity of sessions, while a watcher runs; ``process_json`` is
the process that runs the session, ``watcher_json`` the watcher: when it has ended, the row is
invalid. The table is separate from ``chat_sessions``, so that a session that was followed
live has the same row as one that was read once.
``changes``: log of changes for pollers; the newest row is never deleted, so ``seq`` needs no
AUTOINCREMENT (which would cost each small transaction as much as its rows).
``verb_log``: changes for undo and redo.
"""

ATTACHMENT_COLUMNS = ("session_id", "name", "media_type", "size", "body")


DEPENDENCIES = """
CREATE TABLE unit_files (
    kind     TEXT NOT NULL,
    root     TEXT NOT NULL,
    key      TEXT NOT NULL,
    path     TEXT NOT NULL,
    inode    INTEGER NOT NULL,
    size     INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    PRIMARY KEY (kind, root, key, path)
) WITHOUT ROWID;
CREATE INDEX unit_files_path ON unit_files(path);
CREATE TABLE unit_facts (
    kind    TEXT NOT NULL,
    root    TEXT NOT NULL,
    key     TEXT NOT NULL,
    name    TEXT NOT NULL,
    session TEXT NOT NULL,
    value   TEXT NOT NULL,
    PRIMARY KEY (kind, root, key, name, session)
) WITHOUT ROWID;
CREATE INDEX unit_facts_name ON unit_facts(kind, name);
CREATE TABLE unit_wants (
    kind  TEXT NOT NULL,
    root  TEXT NOT NULL,
    key   TEXT NOT NULL,
    names BLOB NOT NULL,
    PRIMARY KEY (kind, root, key)
) WITHOUT ROWID;
"""
"""Dependencies between units of ``source_units`` (``store.sync.depending``).

``unit_files``: other files and folders that a unit's reading used, in their state at that
time; all zero for one that was looked for and missing.
``unit_facts``: facts that a unit provides for others, and the session they are about (by
source id).
``unit_wants``: hashes of the facts that a unit wants, eight bytes each.
"""

NEWS = """
CREATE TABLE unit_news (
    kind TEXT NOT NULL,
    root TEXT NOT NULL,
    key  TEXT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (kind, root, key, name)
) WITHOUT ROWID;
"""
"""New facts of units, by name, until the units that want them are to be read again.

So a sync that was stopped in between goes on (``store.sync.depending``).
"""

SHARED = """
CREATE TABLE shared_sessions (
    session_id  TEXT PRIMARY KEY REFERENCES chat_sessions(id) ON DELETE CASCADE,
    owner       TEXT NOT NULL,
    library     TEXT NOT NULL,
    original_id TEXT NOT NULL,
    digest      TEXT NOT NULL
);
CREATE UNIQUE INDEX shared_sessions_original ON shared_sessions(owner, library, original_id);
CREATE TABLE shared_libraries (
    owner   TEXT NOT NULL,
    library TEXT NOT NULL,
    seq     INTEGER NOT NULL,
    masking TEXT NOT NULL,
    PRIMARY KEY (owner, library)
);
"""
"""In a team's store, what came from whose library (``store.copying.sharing``).

``original_id``: the session's id there; ``digest``: the hash of the rows that came from there.
``shared_libraries``: up to which change of the library its sessions are here, ``masking`` says
how they were masked.
"""

SERVERS = """
CREATE TABLE source_servers (
    root     TEXT NOT NULL,
    identity TEXT NOT NULL,
    place    TEXT NOT NULL,
    PRIMARY KEY (root, identity)
);
CREATE INDEX source_servers_identity ON source_servers(identity);
CREATE INDEX source_servers_place ON source_servers(place);
"""
"""Which databases a server's URL led to, the newest last (``store.sync.server_places``).

``root``: the URL as it is named, without its password. ``identity``: of the database.
``place``: the URL by which ``source_units`` and the sessions name it.
"""

LEASES = """
CREATE TABLE recorder_leases (
    session_id  TEXT PRIMARY KEY,
    holder_json TEXT NOT NULL,
    ends_at     INTEGER NOT NULL
);
"""
"""On a server behind a pooler, which recorder has a session, and until when.

See ``store.recorder.claims``.
"""
