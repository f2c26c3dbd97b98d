-- Evidence: cells, their sums, what went into them, and what is to go out. Moments are microseconds since 1970-01-01 UTC,
-- and 0 is none.

CREATE TABLE heed_schema (
    version INTEGER PRIMARY KEY
) STRICT;

-- A cell is named by its texts, and found by their SHA-256.
CREATE TABLE heed_cells (
    cell      TEXT PRIMARY KEY,
    kind      TEXT NOT NULL,
    scope     TEXT NOT NULL,
    item      TEXT NOT NULL,
    name      TEXT NOT NULL,
    half_life INTEGER NOT NULL, -- microseconds; 0: never fades
    by_origin INTEGER NOT NULL, -- 1: a tally for each channel and source
    restart   INTEGER NOT NULL  -- what happened before does not count
) STRICT, WITHOUT ROWID;
CREATE INDEX heed_cells_scope ON heed_cells (kind, scope);

-- The sums of one origin of a cell, stated at a landmark: a whole number of steps of 256 half-lives since 1970.
CREATE TABLE heed_tallies (
    cell           TEXT NOT NULL,
    channel        TEXT NOT NULL,
    source         TEXT NOT NULL,
    landmark       INTEGER NOT NULL,
    mass           REAL NOT NULL,
    squares        REAL NOT NULL,
    reward         REAL NOT NULL,
    reward_squares REAL NOT NULL,
    n_positive     INTEGER NOT NULL,
    n_negative     INTEGER NOT NULL,
    n_neutral      INTEGER NOT NULL,
    last_positive  INTEGER NOT NULL,
    last_negative  INTEGER NOT NULL,
    last_neutral   INTEGER NOT NULL,
    lost_positive  INTEGER NOT NULL, -- when the last happened that counts and is no longer in the history
    lost_negative  INTEGER NOT NULL,
    lost_neutral   INTEGER NOT NULL,
    lost_source    INTEGER NOT NULL, -- 1: one of those had a source, which the tally does not tell apart
    PRIMARY KEY (cell, channel, source)
) STRICT, WITHOUT ROWID;
CREATE INDEX heed_tallies_source ON heed_tallies (source) WHERE source <> '';
CREATE INDEX heed_tallies_lost_source ON heed_tallies (lost_source) WHERE lost_source = 1;

-- Ids that were seen: 0 of observations and batches, 1 of audit entries, 2 of outgoing events.
CREATE TABLE heed_ids (
    space     INTEGER NOT NULL,
    id        TEXT NOT NULL,
    recorded  INTEGER NOT NULL,
    traced    INTEGER NOT NULL, -- 1: a history was kept when it came
    retracted INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (space, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX heed_ids_recorded ON heed_ids (recorded);

CREATE TABLE heed_history (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    cell        TEXT NOT NULL,
    id          TEXT NOT NULL,
    happened    INTEGER NOT NULL,
    recorded    INTEGER NOT NULL,
    source      TEXT NOT NULL,
    observation TEXT NOT NULL -- JSON
) STRICT;
CREATE INDEX heed_history_cell ON heed_history (cell, happened, seq);
CREATE INDEX heed_history_id ON heed_history (id);
CREATE INDEX heed_history_recorded ON heed_history (recorded);
CREATE INDEX heed_history_source ON heed_history (source) WHERE source <> '';

-- Which ids' observations have left the history of a cell.
CREATE TABLE heed_forgotten (
    id       TEXT NOT NULL,
    cell     TEXT NOT NULL,
    recorded INTEGER NOT NULL,
    PRIMARY KEY (id, cell)
) STRICT, WITHOUT ROWID;
CREATE INDEX heed_forgotten_cell ON heed_forgotten (cell);
CREATE INDEX heed_forgotten_recorded ON heed_forgotten (recorded);

CREATE TABLE heed_audit (
    seq   INTEGER PRIMARY KEY AUTOINCREMENT,
    entry TEXT NOT NULL -- JSON
) STRICT;

CREATE TABLE heed_outbox (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    id       TEXT NOT NULL UNIQUE,
    topic    TEXT NOT NULL,
    happened TEXT NOT NULL, -- RFC 3339
    payload  BLOB
) STRICT;

INSERT INTO heed_schema (version) VALUES (1);
