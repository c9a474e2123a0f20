CREATE TABLE invocations (
    id TEXT NOT NULL,
    skill TEXT NOT NULL,
    plugin TEXT,
    prompt TEXT,
    started_at FLOAT NOT NULL,
    ended_at FLOAT,
    status TEXT DEFAULT 'running' NOT NULL CONSTRAINT ck_invocations_status CHECK (status IN ('running','completed','completed_empty','failed','timed_out','aborted','cancelled')),
    session_count INTEGER DEFAULT '0' NOT NULL,
    created_at FLOAT NOT NULL,
    updated_at FLOAT NOT NULL,
    node_metadata JSON,
    status_reason_code TEXT,
    status_reason_summary TEXT,
    status_evidence_refs JSON,
    PRIMARY KEY (id)
);
CREATE INDEX idx_invocations_reaper ON invocations (status, started_at, id);
CREATE INDEX idx_invocations_skill ON invocations (skill);
CREATE INDEX idx_invocations_status ON invocations (status);
CREATE INDEX idx_invocations_updated ON invocations (updated_at);
CREATE TABLE message_types (
    type_id SERIAL NOT NULL,
    lion_class TEXT NOT NULL,
    PRIMARY KEY (type_id),
    UNIQUE (lion_class)
);
CREATE TABLE progressions (
    id TEXT NOT NULL,
    created_at FLOAT NOT NULL,
    collection TEXT DEFAULT '[]' NOT NULL,
    PRIMARY KEY (id)
);
CREATE TABLE projects (
    name TEXT NOT NULL,
    source TEXT NOT NULL,
    path TEXT,
    github TEXT,
    description TEXT,
    created_at FLOAT NOT NULL,
    updated_at FLOAT NOT NULL,
    last_seen_at FLOAT,
    PRIMARY KEY (name)
);
CREATE INDEX idx_projects_source ON projects (source);
CREATE INDEX idx_projects_updated ON projects (updated_at);
CREATE TABLE status_transitions (
    id TEXT NOT NULL,
    entity_type TEXT NOT NULL,
    entity_id TEXT NOT NULL,
    previous_status TEXT,
    status TEXT NOT NULL,
    reason_code TEXT NOT NULL,
    reason_summary TEXT,
    evidence_refs JSON,
    source TEXT NOT NULL,
    actor TEXT,
    created_at FLOAT NOT NULL,
    metadata JSON,
    PRIMARY KEY (id)
);
CREATE INDEX idx_status_transitions_created ON status_transitions (created_at);
CREATE INDEX idx_status_transitions_entity ON status_transitions (entity_type, entity_id, created_at);
CREATE INDEX idx_status_transitions_reason ON status_transitions (reason_code, created_at);
CREATE TABLE messages (
    id TEXT NOT NULL,
    created_at FLOAT NOT NULL,
    node_metadata JSON,
    content JSON NOT NULL,
    embedding BYTEA,
    sender TEXT,
    recipient TEXT,
    channel TEXT,
    role TEXT NOT NULL,
    lion_class INTEGER NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY(lion_class) REFERENCES message_types (type_id)
);
CREATE INDEX idx_messages_created ON messages (created_at);
CREATE INDEX idx_messages_lion_class ON messages (lion_class);
CREATE INDEX idx_messages_recipient ON messages (recipient) WHERE recipient IS NOT NULL;
CREATE INDEX idx_messages_role ON messages (role);
CREATE INDEX idx_messages_sender ON messages (sender) WHERE sender IS NOT NULL;
CREATE TABLE sessions (
    id TEXT NOT NULL,
    cc_session_id TEXT,
    run_id TEXT,
    created_at FLOAT NOT NULL,
    node_metadata JSON,
    name TEXT,
    user_label TEXT,
    "user" TEXT,
    progression_id TEXT NOT NULL,
    first_msg_id TEXT,
    last_msg_id TEXT,
    updated_at FLOAT NOT NULL,
    playbook_name TEXT,
    agent_name TEXT,
    invocation_kind TEXT CONSTRAINT ck_sessions_invocation_kind CHECK (invocation_kind IS NULL OR invocation_kind IN ('agent','play','flow','fanout','show-play','engine')),
    show_topic TEXT,
    show_play_name TEXT,
    artifacts_path TEXT,
    source_kind TEXT DEFAULT 'live' CONSTRAINT ck_sessions_source_kind CHECK (source_kind IS NULL OR source_kind IN ('live','imported_fs','imported_codex')),
    status TEXT,
    started_at FLOAT,
    ended_at FLOAT,
    ended_at_is_approximate INTEGER DEFAULT '0' NOT NULL,
    last_message_at FLOAT,
    current_phase TEXT,
    invocation_id TEXT,
    model TEXT,
    provider TEXT,
    effort TEXT,
    agent_hash TEXT,
    project TEXT,
    project_source TEXT,
    status_reason_code TEXT,
    status_reason_summary TEXT,
    status_evidence_refs JSON,
    artifact_contract_json JSON,
    artifact_verification_json JSON,
    input_tokens INTEGER,
    output_tokens INTEGER,
    total_cost_usd FLOAT,
    num_turns INTEGER,
    duration_ms FLOAT,
    PRIMARY KEY (id),
    FOREIGN KEY(progression_id) REFERENCES progressions (id),
    FOREIGN KEY(first_msg_id) REFERENCES messages (id),
    FOREIGN KEY(last_msg_id) REFERENCES messages (id),
    FOREIGN KEY(invocation_id) REFERENCES invocations (id)
);
CREATE INDEX idx_sessions_cc_session ON sessions (cc_session_id) WHERE cc_session_id IS NOT NULL;
CREATE INDEX idx_sessions_first_msg_id ON sessions (first_msg_id);
CREATE INDEX idx_sessions_invocation ON sessions (invocation_id) WHERE invocation_id IS NOT NULL;
CREATE INDEX idx_sessions_invocation_status_created ON sessions (invocation_id, status, created_at, id) WHERE invocation_id IS NOT NULL;
CREATE INDEX idx_sessions_last_msg_id ON sessions (last_msg_id);
CREATE INDEX idx_sessions_progression_id ON sessions (progression_id);
CREATE INDEX idx_sessions_project ON sessions (project) WHERE project IS NOT NULL;
CREATE INDEX idx_sessions_status_last_msg ON sessions (status, last_message_at) WHERE status = 'running';
CREATE INDEX idx_sessions_status_updated ON sessions (status, updated_at);
CREATE INDEX idx_sessions_terminal_missing_end ON sessions (id) WHERE ended_at IS NULL AND status IN ('completed','completed_empty','failed','timed_out','aborted','cancelled');
CREATE INDEX idx_sessions_updated ON sessions (updated_at);
CREATE TABLE approvals (
    id TEXT NOT NULL,
    action_kind TEXT NOT NULL,
    params_hash TEXT NOT NULL,
    session_id TEXT,
    status TEXT DEFAULT 'pending' NOT NULL CONSTRAINT ck_approvals_status CHECK (status IN ('pending','granted','consumed','expired','denied')),
    proposed_at FLOAT NOT NULL,
    granted_at FLOAT,
    consumed_at FLOAT,
    expires_at FLOAT NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY(session_id) REFERENCES sessions (id)
);
CREATE INDEX idx_approvals_session ON approvals (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX idx_approvals_status ON approvals (status) WHERE status IN ('pending', 'granted');
CREATE TABLE branches (
    id TEXT NOT NULL,
    created_at FLOAT NOT NULL,
    node_metadata JSON,
    "user" TEXT,
    name TEXT,
    session_id TEXT NOT NULL,
    progression_id TEXT NOT NULL,
    system_msg_id TEXT,
    model TEXT,
    provider TEXT,
    agent_name TEXT,
    status TEXT,
    started_at FLOAT,
    ended_at FLOAT,
    PRIMARY KEY (id),
    FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE,
    FOREIGN KEY(progression_id) REFERENCES progressions (id),
    FOREIGN KEY(system_msg_id) REFERENCES messages (id)
);
CREATE INDEX idx_branches_progression_id ON branches (progression_id);
CREATE INDEX idx_branches_session_created ON branches (session_id, created_at);
CREATE INDEX idx_branches_system_msg_id ON branches (system_msg_id);
CREATE TABLE run_tags (
    session_id TEXT NOT NULL,
    tag TEXT NOT NULL,
    created_at FLOAT NOT NULL,
    PRIMARY KEY (session_id, tag),
    FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
);
CREATE INDEX idx_run_tags_tag ON run_tags (tag);
CREATE TABLE session_controls (
    id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    verb TEXT NOT NULL CONSTRAINT ck_session_controls_verb CHECK (verb IN ('pause','resume','message','stop')),
    payload JSON,
    created_at FLOAT NOT NULL,
    applied_at FLOAT,
    claimed_at FLOAT,
    result TEXT,
    PRIMARY KEY (id),
    FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
);
CREATE INDEX idx_session_controls_pending ON session_controls (session_id, applied_at) WHERE applied_at IS NULL;
CREATE TABLE session_signals (
    id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    op_id TEXT DEFAULT '' NOT NULL,
    ts FLOAT NOT NULL,
    payload JSON DEFAULT '{}' NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE,
    CONSTRAINT idx_session_signals_seq UNIQUE (session_id, seq)
);
CREATE INDEX idx_session_signals_session_ts ON session_signals (session_id, ts);
