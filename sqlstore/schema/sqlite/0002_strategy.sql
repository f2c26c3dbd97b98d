-- Choices as records, and streams of events. Moments are nanoseconds since 1970-01-01 UTC.

CREATE TABLE heed_choices (
    id        TEXT PRIMARY KEY, -- a UUID
    learner   TEXT NOT NULL,
    session   TEXT NOT NULL,
    item      TEXT NOT NULL,
    category  TEXT NOT NULL,
    context   TEXT NOT NULL,
    made      INTEGER NOT NULL,
    stage     TEXT NOT NULL, -- pending, observed or expired
    before    TEXT NOT NULL, -- the stage before the last change
    ended     INTEGER NOT NULL,
    choice    TEXT NOT NULL, -- JSON
    result    TEXT,          -- JSON
    result_at INTEGER NOT NULL,
    result_id TEXT NOT NULL,
    result_by TEXT NOT NULL -- its source
) STRICT;
CREATE INDEX heed_choices_session ON heed_choices (session, learner, made, id);
CREATE INDEX heed_choices_item ON heed_choices (item, made, id);
CREATE INDEX heed_choices_category ON heed_choices (category, made, id);
CREATE INDEX heed_choices_made ON heed_choices (made, id);
CREATE INDEX heed_choices_pending ON heed_choices (made, id) WHERE stage = 'pending';
CREATE INDEX heed_choices_result_by ON heed_choices (result_by) WHERE result_by <> '';

-- An event waits until it is due, and is due again when its lease is over.
CREATE TABLE heed_stream (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    stream     TEXT NOT NULL,
    id         TEXT NOT NULL,
    topic      TEXT NOT NULL,
    happened   TEXT NOT NULL, -- RFC 3339
    payload    BLOB,
    due        INTEGER NOT NULL, -- microseconds, by the database's clock
    deliveries INTEGER NOT NULL, -- how many there were; below zero: the last was given back
    holder     TEXT NOT NULL,
    UNIQUE (stream, id)
) STRICT;
CREATE INDEX heed_stream_due ON heed_stream (stream, due, seq);

INSERT INTO heed_schema (version) VALUES (2);
