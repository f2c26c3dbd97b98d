-- What the other packages keep: values as JSON, each of a sort, found by their id and listed by their class, in the order in
-- which they came or by a moment, in nanoseconds since 1970-01-01 UTC.

CREATE TABLE heed_documents (
    seq      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    doc      TEXT COLLATE "C" NOT NULL UNIQUE, -- the SHA-256 of sort and id
    sort     TEXT COLLATE "C" NOT NULL,
    id       TEXT COLLATE "C" NOT NULL,
    class    TEXT COLLATE "C" NOT NULL,
    moment   BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    body     TEXT COLLATE "C" NOT NULL -- JSON
);
CREATE INDEX heed_documents_class ON heed_documents (sort, class, seq);
CREATE INDEX heed_documents_sort ON heed_documents (sort, seq);
CREATE INDEX heed_documents_moment ON heed_documents (sort, moment);

INSERT INTO heed_schema (version) VALUES (3);
