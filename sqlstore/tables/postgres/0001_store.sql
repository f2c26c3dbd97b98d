-- The store: evidence (cells, their sums, what went into them) and records. Moments are microseconds since 1970-01-01 UTC,
-- and 0 is none. Ids and cells are found by the first 16 bytes of a SHA-256, in base64.
--
-- A checksum is the CRC-32C of the row's texts, each after its length, plus its numbers. It does not hold seq, which has a copy.

-- The version of these tables.
CREATE TABLE heed_store (
    one      BIGINT PRIMARY KEY CHECK (one = 1),
    version  BIGINT NOT NULL,
    checksum BIGINT NOT NULL GENERATED ALWAYS AS (one + version) STORED
);

CREATE TABLE heed_cell (
    cell      TEXT COLLATE "C" PRIMARY KEY,
    kind      TEXT COLLATE "C" NOT NULL,
    scope     TEXT COLLATE "C" NOT NULL,
    item      TEXT COLLATE "C" NOT NULL,
    name      TEXT COLLATE "C" NOT NULL,
    half_life BIGINT NOT NULL, -- microseconds; 0: never fades
    by_origin BIGINT NOT NULL, -- 1: a tally for each channel and source
    restart   BIGINT NOT NULL, -- what happened before does not count
    lot       BIGINT NOT NULL, -- 63 bits of a hash of the item, by which samples are drawn
    checksum  BIGINT NOT NULL  -- without cell and lot, which are hashes
);
CREATE INDEX heed_cell_scope ON heed_cell (kind, scope, lot);

-- The sums of one origin of a cell, stated at a landmark: a whole number of steps of 256 half-lives since 1970.
CREATE TABLE heed_tally (
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
    named          BIGINT NOT NULL, -- the CRC-32C of cell, channel and source
    checksum       BIGINT NOT NULL, -- named and the other whole numbers added up
    mass_copy           DOUBLE PRECISION NOT NULL,
    squares_copy        DOUBLE PRECISION NOT NULL,
    reward_copy         DOUBLE PRECISION NOT NULL,
    reward_squares_copy DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (cell, channel, source)
);
CREATE INDEX heed_tally_source ON heed_tally (source) WHERE source <> '';
CREATE INDEX heed_tally_lost ON heed_tally (lost_source) WHERE lost_source = 1;

-- The ids of observations and batches that were seen.
CREATE TABLE heed_id (
    id        TEXT COLLATE "C" PRIMARY KEY,
    recorded  BIGINT NOT NULL,
    traced    BIGINT NOT NULL, -- 1: a history was kept when it came
    retracted BIGINT NOT NULL DEFAULT 0,
    checksum  BIGINT NOT NULL
);
CREATE INDEX heed_id_recorded ON heed_id (recorded);

CREATE TABLE heed_observation (
    seq         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    cell        TEXT COLLATE "C" NOT NULL,
    id          TEXT COLLATE "C" NOT NULL,
    happened    BIGINT NOT NULL,
    recorded    BIGINT NOT NULL,
    source      TEXT COLLATE "C" NOT NULL,
    observation TEXT COLLATE "C" NOT NULL, -- JSON of the rest
    checksum    BIGINT NOT NULL,
    seq_copy    BIGINT NOT NULL GENERATED ALWAYS AS (seq) STORED
);
CREATE INDEX heed_observation_cell ON heed_observation (cell, happened, seq);
CREATE INDEX heed_observation_id ON heed_observation (id);
CREATE INDEX heed_observation_recorded ON heed_observation (recorded);
CREATE INDEX heed_observation_source ON heed_observation (source) WHERE source <> '';

-- The ids whose observations have left the history of a cell.
CREATE TABLE heed_lost (
    id       TEXT COLLATE "C" NOT NULL,
    cell     TEXT COLLATE "C" NOT NULL,
    recorded BIGINT NOT NULL,
    source   TEXT COLLATE "C" NOT NULL, -- of the observation; empty too where it is not known any more
    checksum BIGINT NOT NULL,
    PRIMARY KEY (id, cell)
);
CREATE INDEX heed_lost_cell ON heed_lost (cell);
CREATE INDEX heed_lost_source ON heed_lost (source) WHERE source <> '';
CREATE INDEX heed_lost_recorded ON heed_lost (recorded);

-- How kinds of records are kept.
CREATE TABLE heed_kind (
    name     TEXT COLLATE "C" PRIMARY KEY,
    kind     TEXT COLLATE "C" NOT NULL, -- JSON
    checksum BIGINT NOT NULL
);

CREATE TABLE heed_record (
    seq      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- the order of first writing
    ref      TEXT COLLATE "C" NOT NULL UNIQUE, -- the hash of kind and id
    kind     TEXT COLLATE "C" NOT NULL,
    id       TEXT COLLATE "C" NOT NULL,
    at       BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    keys     TEXT COLLATE "C" NOT NULL, -- JSON
    body     TEXT COLLATE "C" NOT NULL, -- JSON
    checksum BIGINT NOT NULL, -- without ref, which is a hash
    seq_copy BIGINT NOT NULL GENERATED ALWAYS AS (seq) STORED
);
CREATE INDEX heed_record_at ON heed_record (kind, at, seq);

-- The hashes of a record's kind with each of its keys. The record has the same, so there is no checksum.
CREATE TABLE heed_key (
    hash TEXT COLLATE "C" NOT NULL,
    at   BIGINT NOT NULL,
    seq  BIGINT NOT NULL,
    PRIMARY KEY (hash, at, seq)
);

-- The events of inboxes. An event waits until it is due, and is due again when its lease is over.
CREATE TABLE heed_inbox (
    seq        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stream     TEXT COLLATE "C" NOT NULL,
    id         TEXT COLLATE "C" NOT NULL,
    topic      TEXT COLLATE "C" NOT NULL,
    happened   TEXT COLLATE "C" NOT NULL, -- RFC 3339
    payload    BYTEA,
    due        BIGINT NOT NULL, -- by the database's clock
    deliveries BIGINT NOT NULL, -- how many there were; below zero: the last was given back
    holder     TEXT COLLATE "C" NOT NULL,
    checksum   BIGINT NOT NULL, -- of stream, id, topic, happened and payload
    waits_copy TEXT COLLATE "C" NOT NULL GENERATED ALWAYS AS (
        CAST(seq AS TEXT) || ' ' || CAST(due AS TEXT) || ' ' || CAST(deliveries AS TEXT) || ' ' || holder
    ) STORED,
    UNIQUE (stream, id)
);
CREATE INDEX heed_inbox_due ON heed_inbox (stream, due, seq);

-- The numbers of commits.
CREATE SEQUENCE heed_revision;

INSERT INTO heed_store (one, version) VALUES (1, 3);
