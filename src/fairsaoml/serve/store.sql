-- The tables of a store, of schema 1, all or none (store.py).
BEGIN IMMEDIATE;
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE counts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE rows (
  number INTEGER PRIMARY KEY,           -- in the order of issue
  id TEXT NOT NULL,                     -- as JSON: 1 and "1" are two ids
  task INTEGER NOT NULL,                -- that it was issued into
  at REAL NOT NULL,
  round INTEGER,                        -- of the model that decided
  content TEXT NOT NULL,                -- the row as it came
  answer TEXT NOT NULL,                 -- what was decided
  why BLOB,
  groups TEXT,                          -- as they came
  label TEXT,
  state INTEGER NOT NULL DEFAULT 0,
  taken_by INTEGER                      -- the task it was learned with
);
CREATE INDEX rows_by_id ON rows (id);
CREATE INDEX rows_open ON rows (state, task, number) WHERE state < 2;
CREATE INDEX rows_taken ON rows (taken_by, number) WHERE taken_by IS NOT NULL;
CREATE TABLE tasks (
  number INTEGER PRIMARY KEY,
  opened_at REAL NOT NULL,
  size INTEGER NOT NULL,                -- predictions issued into it
  full_at REAL,
  closed_at REAL,
  why TEXT,
  round INTEGER UNIQUE,                 -- null where no label came
  late INTEGER,
  unlabelled INTEGER,
  record TEXT                           -- the journal's line, once it is learned
);
CREATE TABLE events (number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT, content TEXT);
PRAGMA application_id = 0x66616972;      -- store.py checks both
PRAGMA user_version = 1;
COMMIT;
