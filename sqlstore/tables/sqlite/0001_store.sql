-- The store: evidence (cells, their sums, what went into them) and records. Moments are microseconds since 1970-01-01 UTC,
-- and 0 is none. Ids and cells are found by the first 16 bytes of a SHA-256, in base64.

-- The version of these tables, and the number of the last commit that wrote records.
CREATE TABLE heed_store (
    one       INTEGER PRIMARY KEY CHECK (one = 1),
    version   INTEGER NOT NULL,
    revision  INTEGER NOT NULL,
    forgotten INTEGER NOT NULL, -- how often people were forgotten,
    rewritten INTEGER NOT NULL, -- how many of these times the file was rewritten since,
    erased    INTEGER NOT NULL  -- and how many times the log was emptied after that
) STRICT;

CREATE TABLE heed_cell (
    cell      TEXT PRIMARY KEY,
    kind      TEXT NOT NULL,
    scope     TEXT NOT NULL,
    item      TEXT NOT NULL,
    name      TEXT NOT NULL,
    half_life INTEGER NOT NULL, -- microseconds; 0: never fades
    by_origin INTEGER NOT NULL, -- 1: a tally for each channel and source
    restart   INTEGER NOT NULL, -- what happened before does not count
    lot       INTEGER NOT NULL  -- 63 bits of a hash of the item, by which samples are drawn
) STRICT, WITHOUT ROWID;
CREATE INDEX heed_cell_scope ON heed_cell (kind, scope, lot, item, name, half_life, by_origin, restart);

-- The sums of one origin of a cell, stated at a landmark: a whole number of steps of 256 half-lives since 1970.
CREATE TABLE heed_tally (
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
CREATE INDEX heed_tally_source ON heed_tally (source) WHERE source <> '';
CREATE INDEX heed_tally_lost ON heed_tally (lost_source) WHERE lost_source = 1;

-- The ids of observations and batches that were seen.
CREATE TABLE heed_id (
    id        TEXT PRIMARY KEY,
    recorded  INTEGER NOT NULL,
    traced    INTEGER NOT NULL, -- 1: a history was kept when it came
    retracted INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX heed_id_recorded ON heed_id (recorded);

CREATE TABLE heed_observation (
    seq         INTEGER PRIMARY KEY,
    cell        TEXT NOT NULL,
    id          TEXT NOT NULL,
    happened    INTEGER NOT NULL,
    recorded    INTEGER NOT NULL,
    source      TEXT NOT NULL,
    observation TEXT NOT NULL  -- JSON of the rest
) STRICT;
CREATE INDEX heed_observation_cell ON heed_observation (cell, happened, seq);
CREATE INDEX heed_observation_id ON heed_observation (id);
CREATE INDEX heed_observation_recorded ON heed_observation (recorded);
CREATE INDEX heed_observation_source ON heed_observation (source) WHERE source <> '';

-- The ids whose observations have left the history of a cell.
CREATE TABLE heed_lost (
    id       TEXT NOT NULL,
    cell     TEXT NOT NULL,
    recorded INTEGER NOT NULL,
    source   TEXT NOT NULL, -- of the observation; empty too where it is not known any more
    PRIMARY KEY (id, cell)
) STRICT, WITHOUT ROWID;
CREATE INDEX heed_lost_cell ON heed_lost (cell);
CREATE INDEX heed_lost_source ON heed_lost (source) WHERE source <> '';
CREATE INDEX heed_lost_recorded ON heed_lost (recorded);

-- How kinds of records are kept.
CREATE TABLE heed_kind (
    name     TEXT PRIMARY KEY,
    kind     TEXT NOT NULL  -- JSON
) STRICT, WITHOUT ROWID;

CREATE TABLE heed_record (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT, -- the order of first writing
    ref      TEXT NOT NULL UNIQUE, -- the hash of kind and id
    kind     TEXT NOT NULL,
    id       TEXT NOT NULL,
    at       INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    keys     TEXT NOT NULL, -- JSON
    body     TEXT NOT NULL  -- JSON
) STRICT;
CREATE INDEX heed_record_at ON heed_record (kind, at, seq);

-- The hashes of a record's kind with each of its keys.
CREATE TABLE heed_key (
    hash TEXT NOT NULL,
    at   INTEGER NOT NULL,
    seq  INTEGER NOT NULL,
    PRIMARY KEY (hash, at, seq)
) STRICT, WITHOUT ROWID;

INSERT INTO heed_store (one, version, revision, forgotten, rewritten, erased) VALUES (1, 7, 0, 0, 0, 0);
