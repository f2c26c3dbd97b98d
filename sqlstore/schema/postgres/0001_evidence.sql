-- Evidence: cells, their sums, what went into them, and what is to go out. Moments are microseconds since 1970-01-01 UTC,
-- and 0 is none.

CREATE TABLE heed_schema (
    version BIGINT PRIMARY KEY
);

-- A cell is named by its texts, and found by their SHA-256.
CREATE TABLE heed_cells (
    cell      TEXT COLLATE "C" PRIMARY KEY,
    kind      TEXT COLLATE "C" NOT NULL,
    scope     TEXT COLLATE "C" NOT NULL,
    item      TEXT COLLATE "C" NOT NULL,
    name      TEXT COLLATE "C" NOT NULL,
    half_life BIGINT NOT NULL, -- microseconds; 0: never fades
    by_origin BIGINT NOT NULL, -- 1: a tally for each channel and source
    restart   BIGINT NOT NULL  -- what happened before does not count
);
CREATE INDEX heed_cells_scope ON heed_cells (kind, scope);

-- The sums of one origin of a cell, stated at a landmark: a whole number of steps of 256 half-lives since 1970.
CREATE TABLE heed_tallies (
    cell           TEXT COLLATE "C" NOT NULL,
    channel        TEXT COLLATE "C" NOT NULL,
    source         TEXT COLLATE "C" NOT NULL,
    landmark       BIGINT NOT NULL,
    mass           DOUBLE PRECISION NOT NULL,
    squares        DOUBLE PRECISION NOT NULL,
    reward         DOUBLE PRECISION NOT NULL,
    reward_squares DOUBLE PRECISION NOT NULL,
    n_positive     BIGINT NOT NULL,
    n_negative     BIGINT NOT NULL,
    n_neutral      BIGINT NOT NULL,
    last_positive  BIGINT NOT NULL,
    last_negative  BIGINT NOT NULL,
    last_neutral   BIGINT NOT NULL,
    lost_positive  BIGINT NOT NULL, -- when the last happened that counts and is no longer in the history
    lost_negative  BIGINT NOT NULL,
    lost_neutral   BIGINT NOT NULL,
    lost_source    BIGINT NOT NULL, -- 1: one of those had a source, which the tally does not tell apart
    PRIMARY KEY (cell, channel, source)
);
CREATE INDEX heed_tallies_source ON heed_tallies (source) WHERE source <> '';
CREATE INDEX heed_tallies_lost_source ON heed_tallies (lost_source) WHERE lost_source = 1;

-- Ids that were seen: 0 of observations and batches, 1 of audit entries, 2 of outgoing events.
CREATE TABLE heed_ids (
    space     BIGINT NOT NULL,
    id        TEXT COLLATE "C" NOT NULL,
    recorded  BIGINT NOT NULL,
    traced    BIGINT NOT NULL, -- 1: a history was kept when it came
    retracted BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (space, id)
);
CREATE INDEX heed_ids_recorded ON heed_ids (recorded);

CREATE TABLE heed_history (
    seq         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    cell        TEXT COLLATE "C" NOT NULL,
    id          TEXT COLLATE "C" NOT NULL,
    happened    BIGINT NOT NULL,
    recorded    BIGINT NOT NULL,
    source      TEXT COLLATE "C" NOT NULL,
    observation TEXT COLLATE "C" NOT NULL -- JSON
);
CREATE INDEX heed_history_cell ON heed_history (cell, happened, seq);
CREATE INDEX heed_history_id ON heed_history (id);
CREATE INDEX heed_history_recorded ON heed_history (recorded);
CREATE INDEX heed_history_source ON heed_history (source) WHERE source <> '';

-- Which ids' observations have left the history of a cell.
CREATE TABLE heed_forgotten (
    id       TEXT COLLATE "C" NOT NULL,
    cell     TEXT COLLATE "C" NOT NULL,
    recorded BIGINT NOT NULL,
    PRIMARY KEY (id, cell)
);
CREATE INDEX heed_forgotten_cell ON heed_forgotten (cell);
CREATE INDEX heed_forgotten_recorded ON heed_forgotten (recorded);

CREATE TABLE heed_audit (
    seq   BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    entry TEXT COLLATE "C" NOT NULL -- JSON
);

CREATE TABLE heed_outbox (
    seq      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id       TEXT COLLATE "C" NOT NULL UNIQUE,
    topic    TEXT COLLATE "C" NOT NULL,
    happened TEXT COLLATE "C" NOT NULL, -- RFC 3339
    payload  BYTEA
);

INSERT INTO heed_schema (version) VALUES (1);
