CREATE TABLE accounts (id text PRIMARY KEY, metadata jsonb DEFAULT '{}'::jsonb, created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now(), name text NOT NULL);
CREATE TABLE projects (id text PRIMARY KEY, metadata jsonb DEFAULT '{}'::jsonb, created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now(), name text NOT NULL);
CREATE TABLE workspaces (id text PRIMARY KEY, metadata jsonb DEFAULT '{}'::jsonb, created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now(), project_id text NOT NULL REFERENCES projects(id) ON DELETE CASCADE, name text NOT NULL);
CREATE TABLE sessions (
  id text PRIMARY KEY, metadata jsonb DEFAULT '{}'::jsonb, created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now(),
  account_id text REFERENCES accounts(id) ON DELETE SET NULL, project_id text NOT NULL REFERENCES projects(id) ON DELETE CASCADE,
  workspace_id text REFERENCES workspaces(id) ON DELETE SET NULL, parent_id text REFERENCES sessions(id) ON DELETE SET NULL,
  slug text NOT NULL, title text NOT NULL, status text NOT NULL DEFAULT 'idle', version text NOT NULL DEFAULT '1', provider text, role_name text, data jsonb);
CREATE TABLE messages (
  id text PRIMARY KEY, metadata jsonb DEFAULT '{}'::jsonb, created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now(),
  session_id text NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, role text NOT NULL, data jsonb NOT NULL);
CREATE TABLE parts (
  id text PRIMARY KEY NOT NULL, metadata jsonb DEFAULT '{}'::jsonb, created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now(),
  message_id text NOT NULL REFERENCES messages(id) ON DELETE CASCADE, session_id text NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, type text NOT NULL, data jsonb NOT NULL);

CREATE UNIQUE INDEX unq_sessions_slug ON sessions (slug);
CREATE INDEX idx_sessions_project_id ON sessions (project_id);
CREATE INDEX idx_sessions_workspace_id ON sessions (workspace_id);
CREATE INDEX idx_sessions_status ON sessions (status);
CREATE INDEX idx_sessions_active ON sessions (id) WHERE status IN ('idle', 'busy', 'retry');
CREATE INDEX idx_sessions_account_id ON sessions (account_id);
CREATE INDEX idx_sessions_role_name ON sessions (role_name);
CREATE INDEX idx_sessions_parent_id ON sessions (parent_id);
CREATE INDEX idx_messages_session_id_created_at_id ON messages (session_id, created_at, id);
CREATE INDEX part_session_idx ON parts (session_id);
CREATE INDEX part_message_id_id_idx ON parts (message_id, id);
CREATE INDEX idx_parts_session_id_type ON parts (session_id, type);
