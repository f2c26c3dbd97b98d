-- Choices as records, and streams of events. Moments are nanoseconds since 1970-01-01 UTC.

CREATE TABLE heed_choices (
    id        TEXT COLLATE "C" PRIMARY KEY, -- a UUID
    learner   TEXT COLLATE "C" NOT NULL,
    session   TEXT COLLATE "C" NOT NULL,
    item      TEXT COLLATE "C" NOT NULL,
    category  TEXT COLLATE "C" NOT NULL,
    context   TEXT COLLATE "C" NOT NULL,
    made      BIGINT NOT NULL,
    stage     TEXT COLLATE "C" NOT NULL, -- pending, observed or expired
    before    TEXT COLLATE "C" NOT NULL, -- the stage before the last change
    ended     BIGINT NOT NULL,
    choice    TEXT COLLATE "C" NOT NULL, -- JSON
    result    TEXT COLLATE "C",          -- JSON
    result_at BIGINT NOT NULL,
    result_id TEXT COLLATE "C" NOT NULL,
    result_by TEXT COLLATE "C" NOT NULL -- its source
);
CREATE INDEX heed_choices_session ON heed_choices (session, learner, made, id);
CREATE INDEX heed_choices_item ON heed_choices (item, made, id);
CREATE INDEX heed_choices_category ON heed_choices (category, made, id);
CREATE INDEX heed_choices_made ON heed_choices (made, id);
CREATE INDEX heed_choices_pending ON heed_choices (made, id) WHERE stage = 'pending';
CREATE INDEX heed_choices_result_by ON heed_choices (result_by) WHERE result_by <> '';

-- An event waits until it is due, and is due again when its lease is over.
CREATE TABLE heed_stream (
    seq        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stream     TEXT COLLATE "C" NOT NULL,
    id         TEXT COLLATE "C" NOT NULL,
    topic      TEXT COLLATE "C" NOT NULL,
    happened   TEXT COLLATE "C" NOT NULL, -- RFC 3339
    payload    BYTEA,
    due        BIGINT NOT NULL, -- microseconds, by the database's clock
    deliveries BIGINT NOT NULL, -- how many there were; below zero: the last was given back
    holder     TEXT COLLATE "C" NOT NULL,
    UNIQUE (stream, id)
);
CREATE INDEX heed_stream_due ON heed_stream (stream, due, seq);

INSERT INTO heed_schema (version) VALUES (2);
