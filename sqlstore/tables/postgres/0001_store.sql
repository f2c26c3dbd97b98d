-- The store: evidence (cells, their sums, what went into them) and records. Moments are microseconds since 1970-01-01 UTC,
-- and 0 is none. Ids and cells are found by the first 16 bytes of a SHA-256, in base64.

-- The version of these tables.
CREATE TABLE heed_store (
    one      BIGINT PRIMARY KEY CHECK (one = 1),
    version  BIGINT NOT NULL
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
    lot       BIGINT NOT NULL  -- 63 bits of a hash of the item, by which samples are drawn
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
    PRIMARY KEY (cell, channel, source)
);
CREATE INDEX heed_tally_source ON heed_tally (source) WHERE source <> '';
CREATE INDEX heed_tally_lost ON heed_tally (lost_source) WHERE lost_source = 1;

-- The ids of observations and batches that were seen.
CREATE TABLE heed_id (
    id        TEXT COLLATE "C" PRIMARY KEY,
    recorded  BIGINT NOT NULL,
    traced    BIGINT NOT NULL, -- 1: a history was kept when it came
    retracted BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX heed_id_recorded ON heed_id (recorded);

CREATE TABLE heed_observation (
    seq         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    cell        TEXT COLLATE "C" NOT NULL,
    id          TEXT COLLATE "C" NOT NULL,
    happened    BIGINT NOT NULL,
    recorded    BIGINT NOT NULL,
    source      TEXT COLLATE "C" NOT NULL,
    observation TEXT COLLATE "C" NOT NULL  -- JSON of the rest
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
    PRIMARY KEY (id, cell)
);
CREATE INDEX heed_lost_cell ON heed_lost (cell);
CREATE INDEX heed_lost_source ON heed_lost (source) WHERE source <> '';
CREATE INDEX heed_lost_recorded ON heed_lost (recorded);

-- How kinds of records are kept.
CREATE TABLE heed_kind (
    name     TEXT COLLATE "C" PRIMARY KEY,
    kind     TEXT COLLATE "C" NOT NULL  -- JSON
);

CREATE TABLE heed_record (
    seq      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- the order of first writing
    ref      TEXT COLLATE "C" NOT NULL UNIQUE, -- the hash of kind and id
    kind     TEXT COLLATE "C" NOT NULL,
    id       TEXT COLLATE "C" NOT NULL,
    at       BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    keys     TEXT COLLATE "C" NOT NULL, -- JSON
    body     TEXT COLLATE "C" NOT NULL  -- JSON
);
CREATE INDEX heed_record_at ON heed_record (kind, at, seq);

-- The hashes of a record's kind with each of its keys.
CREATE TABLE heed_key (
    hash TEXT COLLATE "C" NOT NULL,
    at   BIGINT NOT NULL,
    seq  BIGINT NOT NULL,
    PRIMARY KEY (hash, at, seq)
);

-- The numbers of commits.
CREATE SEQUENCE heed_revision;

INSERT INTO heed_store (one, version) VALUES (1, 7);

-- Commits in one statement, which is one round trip. Each statement of the functions sees all that was committed before it.

-- A sum after a number of landmark steps, of 2^-256 each. It is nothing beyond three of them, or below 1e-70.
CREATE FUNCTION heed_scaled(total DOUBLE PRECISION, steps BIGINT) RETURNS DOUBLE PRECISION LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN $2 <= 0 THEN $1
        WHEN $2 > 3 OR abs($1) < 1e-70 THEN 0
        WHEN $2 = 1 THEN $1 * 2::DOUBLE PRECISION ^ -256
        WHEN $2 = 2 THEN $1 * 2::DOUBLE PRECISION ^ -256 * 2::DOUBLE PRECISION ^ -256
        ELSE $1 * 2::DOUBLE PRECISION ^ -256 * 2::DOUBLE PRECISION ^ -256 * 2::DOUBLE PRECISION ^ -256 END
$$;

-- A text after its length in groups of seven bits. Texts of kinds and keys have two of these at most.
CREATE FUNCTION heed_sized(item BYTEA) RETURNS BYTEA LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN length($1) < 128 THEN set_byte('\x00', 0, length($1))
        ELSE set_byte(set_byte('\x0000', 0, length($1) % 128 + 128), 1, length($1) / 128) END || $1
$$;

-- The name by which a key of a kind is found: a hash of both texts.
CREATE FUNCTION heed_hash(kind TEXT, key TEXT) RETURNS TEXT LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN rtrim(translate(encode(substring(sha256(heed_sized(convert_to(kind, 'UTF8')) || heed_sized(convert_to(key, 'UTF8')))
        FROM 1 FOR 16), 'base64'), '+/', '-_'), '=');
END $$;

-- heed_commit adds observations and writes records, all or nothing. It returns one row that says what became of it (what = 0, and
-- one = 'done', 'known' or 'steps'), and before that what belongs to it:
--   done:  the tallies that were added to (4), those of the cells that were asked for (1), and the records that were there already (2).
--   known: the ids that were known (3). Nothing was changed.
--   steps: nothing was changed. The commit has to be made in steps, which find out why.
-- It is an error, and nothing was changed, where that turned out late.
CREATE FUNCTION heed_commit(c JSONB) RETURNS TABLE (
    what BIGINT, one TEXT, two TEXT, three TEXT, half BIGINT, number BIGINT, sum1 DOUBLE PRECISION, sum2 DOUBLE PRECISION,
    sum3 DOUBLE PRECISION, sum4 DOUBLE PRECISION, n1 BIGINT, n2 BIGINT, n3 BIGINT, last1 BIGINT, last2 BIGINT, last3 BIGINT
) LANGUAGE plpgsql SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    tables BIGINT; moment BIGINT; commit_no BIGINT := 0; wanted BIGINT; fits BIGINT; fitting BIGINT; missing BIGINT := 0;
    fresh TEXT[]; there TEXT[]; wrong BOOLEAN; traces BIGINT := CAST(c->>'traced' AS BIGINT); lock RECORD; tenant TEXT;
BEGIN
    SELECT version INTO tables FROM heed_store WHERE one = 1; -- which keeps the tables as they are until the end
    PERFORM pg_advisory_xact_lock_shared(4838441021388);
    moment := coalesce(CAST(c->>'now' AS BIGINT), CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT));
    IF tables <> CAST(c->>'version' AS BIGINT) OR current_setting('transaction_isolation') <> 'read committed'
        OR c->>'now' IS NULL AND abs(moment - CAST(c->>'assumed' AS BIGINT)) > 1000000 THEN
        RETURN QUERY SELECT 0::BIGINT, 'steps', '', '', 0::BIGINT, 0::BIGINT, 0::FLOAT8, 0::FLOAT8, 0::FLOAT8, 0::FLOAT8,
            0::BIGINT, 0::BIGINT, 0::BIGINT, 0::BIGINT, 0::BIGINT, 0::BIGINT;
        RETURN;
    END IF;

    -- Records that are expected and records to change are locked in one order. Else two commits could wait for each other.
    IF c->'expected' IS NOT NULL AND c->'changed' IS NOT NULL THEN
        FOR lock IN SELECT name, shared FROM (
            SELECT e->>0 AS name, true AS shared FROM jsonb_array_elements(c->'expected') AS e
            UNION ALL SELECT e->>0, false FROM jsonb_array_elements(c->'changed') AS e
        ) AS both_lists ORDER BY name COLLATE "C" LOOP
            IF lock.shared THEN
                PERFORM 1 FROM heed_record WHERE ref = lock.name FOR SHARE;
            ELSE
                PERFORM 1 FROM heed_record WHERE ref = lock.name FOR UPDATE;
            END IF;
        END LOOP;
    END IF;
    -- Revisions: those that are expected, and those of the records to change.
    fits := 0; wanted := 0;
    IF c->'expected' IS NOT NULL THEN
        wanted := wanted + jsonb_array_length(c->'expected');
        SELECT fits + count(*) INTO fits FROM jsonb_array_elements(c->'expected') AS e JOIN (
            SELECT ref, revision FROM heed_record
            WHERE ref = ANY (ARRAY(SELECT e->>0 FROM jsonb_array_elements(c->'expected') AS e)) ORDER BY ref FOR SHARE
        ) AS r ON r.ref = e->>0 AND r.revision = CAST(e->>1 AS BIGINT);
    END IF;
    IF c->'changed' IS NOT NULL AND fits = wanted THEN
        wanted := wanted + jsonb_array_length(c->'changed');
        SELECT fits + count(*) INTO fits FROM jsonb_array_elements(c->'changed') AS e JOIN (
            SELECT ref, revision FROM heed_record
            WHERE ref = ANY (ARRAY(SELECT e->>0 FROM jsonb_array_elements(c->'changed') AS e)) ORDER BY ref FOR UPDATE
        ) AS r ON r.ref = e->>0 AND r.revision = CAST(e->>1 AS BIGINT);
    END IF;
    -- Cells that are kept in another way.
    IF c->'cells' IS NOT NULL AND fits = wanted THEN
        SELECT count(k.cell), count(*) FILTER (WHERE k.half_life = CAST(e->>1 AS BIGINT) AND k.by_origin = CAST(e->>2 AS BIGINT)
            AND k.restart <= CAST(e->>3 AS BIGINT)), count(*) - count(k.cell)
        INTO wanted, fits, missing
        FROM jsonb_array_elements(c->'cells') AS e LEFT JOIN LATERAL (
            SELECT cell, half_life, by_origin, restart FROM heed_cell WHERE cell = e->>0 OFFSET 0
        ) AS k ON true;
    END IF;
    -- Tenants that leave. None begins to, because that takes the lock from above alone.
    IF c->'leaving' IS NOT NULL AND fits = wanted THEN
        FOREACH tenant IN ARRAY ARRAY(SELECT jsonb_array_elements_text(c->'leaving')) LOOP
            IF EXISTS (SELECT 1 FROM heed_record WHERE ref = tenant) THEN
                fits := -1;
            END IF;
        END LOOP;
    END IF;
    -- Records that are expected not to be there. While there is a row that is not committed, nobody else can write one of its id.
    IF c->'absent' IS NOT NULL AND fits = wanted THEN
        INSERT INTO heed_record (ref, kind, id, at, revision, keys, body)
        SELECT e, '', '', 0, 0, '[]', '' FROM jsonb_array_elements_text(c->'absent') AS e ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS fitting = ROW_COUNT;
        DELETE FROM heed_record
        WHERE ref = ANY (ARRAY(SELECT e FROM jsonb_array_elements_text(c->'absent') AS e)) AND kind = '' AND revision = 0;
        wanted := wanted + jsonb_array_length(c->'absent');
        fits := fits + fitting;
    END IF;
    IF fits <> wanted THEN
        RETURN QUERY SELECT 0::BIGINT, 'steps', '', '', 0::BIGINT, 0::BIGINT, 0::FLOAT8, 0::FLOAT8, 0::FLOAT8, 0::FLOAT8,
            0::BIGINT, 0::BIGINT, 0::BIGINT, 0::BIGINT, 0::BIGINT, 0::BIGINT;
        RETURN;
    END IF;

    -- An id that another transaction is about to make known is waited for.
    IF c->'ids' IS NOT NULL THEN
        WITH added AS (
            INSERT INTO heed_id (id, recorded, traced)
            SELECT e, moment, traces FROM jsonb_array_elements_text(c->'ids') AS e
            ON CONFLICT DO NOTHING RETURNING id
        ) SELECT array_agg(id) INTO fresh FROM added;
        IF coalesce(cardinality(fresh), 0) < jsonb_array_length(c->'ids') THEN
            DELETE FROM heed_id WHERE id = ANY (fresh);
            RETURN QUERY SELECT 3::BIGINT, e, '', '', 0::BIGINT, 0::BIGINT, 0::FLOAT8, 0::FLOAT8, 0::FLOAT8, 0::FLOAT8,
                    0::BIGINT, 0::BIGINT, 0::BIGINT, 0::BIGINT, 0::BIGINT, 0::BIGINT
                FROM jsonb_array_elements_text(c->'ids') AS e WHERE fresh IS NULL OR e <> ALL (fresh);
            RETURN QUERY SELECT 0::BIGINT, 'known', '', '', 0::BIGINT, 0::BIGINT, 0::FLOAT8, 0::FLOAT8, 0::FLOAT8, 0::FLOAT8,
                0::BIGINT, 0::BIGINT, 0::BIGINT, 0::BIGINT, 0::BIGINT, 0::BIGINT;
            RETURN;
        END IF;
    END IF;
    IF c->'known' IS NOT NULL THEN -- by an earlier try
        SELECT count(*) INTO fits FROM heed_id WHERE id = ANY (ARRAY(SELECT e FROM jsonb_array_elements_text(c->'known') AS e));
        IF fits <> jsonb_array_length(c->'known') THEN
            RAISE EXCEPTION 'heed: this commit is made in steps' USING ERRCODE = 'HD001';
        END IF;
    END IF;

    IF missing > 0 THEN
        INSERT INTO heed_cell (cell, half_life, by_origin, restart, kind, scope, item, name, lot)
        SELECT e->>0, CAST(e->>1 AS BIGINT), CAST(e->>2 AS BIGINT), 0, e->>4, e->>5, e->>6, e->>7, CAST(e->>8 AS BIGINT)
        FROM jsonb_array_elements(c->'cells') AS e
        ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS fitting = ROW_COUNT;
        IF fitting <> missing THEN -- somebody else has added one meanwhile, maybe with another policy
            SELECT count(*) INTO fits FROM jsonb_array_elements(c->'cells') AS e CROSS JOIN LATERAL (
                SELECT half_life, by_origin, restart FROM heed_cell WHERE cell = e->>0 OFFSET 0
            ) AS k WHERE k.half_life = CAST(e->>1 AS BIGINT) AND k.by_origin = CAST(e->>2 AS BIGINT) AND k.restart <= CAST(e->>3 AS BIGINT);
            IF fits <> jsonb_array_length(c->'cells') THEN
                RAISE EXCEPTION 'heed: this commit is made in steps' USING ERRCODE = 'HD001';
            END IF;
        END IF;
    END IF;
    -- The server prepares the expressions of a statement each time, so tallies that need no scaling have a statement of their own.
    IF c->'tallies' IS NOT NULL THEN
        RETURN QUERY INSERT INTO heed_tally AS t (
            cell, channel, source, landmark, mass, squares, reward, reward_squares, n_positive, n_negative, n_neutral,
            last_positive, last_negative, last_neutral, lost_positive, lost_negative, lost_neutral, lost_source
        )
        SELECT e->>0, e->>1, e->>2, CAST(e->>3 AS BIGINT), CAST(e->>4 AS DOUBLE PRECISION), CAST(e->>5 AS DOUBLE PRECISION),
            CAST(e->>6 AS DOUBLE PRECISION), CAST(e->>7 AS DOUBLE PRECISION), CAST(e->>8 AS BIGINT), CAST(e->>9 AS BIGINT),
            CAST(e->>10 AS BIGINT), CAST(e->>11 AS BIGINT), CAST(e->>12 AS BIGINT), CAST(e->>13 AS BIGINT),
            CAST(e->>14 AS BIGINT), CAST(e->>15 AS BIGINT), CAST(e->>16 AS BIGINT), CAST(e->>17 AS BIGINT)
        FROM jsonb_array_elements(c->'tallies') AS e
        ON CONFLICT (cell, channel, source) DO UPDATE SET
            mass = t.mass + excluded.mass,
            squares = t.squares + excluded.squares,
            reward = t.reward + excluded.reward,
            reward_squares = t.reward_squares + excluded.reward_squares,
            n_positive = t.n_positive + excluded.n_positive,
            n_negative = t.n_negative + excluded.n_negative,
            n_neutral = t.n_neutral + excluded.n_neutral,
            last_positive = greatest(t.last_positive, excluded.last_positive),
            last_negative = greatest(t.last_negative, excluded.last_negative),
            last_neutral = greatest(t.last_neutral, excluded.last_neutral),
            lost_positive = greatest(t.lost_positive, excluded.lost_positive),
            lost_negative = greatest(t.lost_negative, excluded.lost_negative),
            lost_neutral = greatest(t.lost_neutral, excluded.lost_neutral),
            lost_source = greatest(t.lost_source, excluded.lost_source)
        WHERE t.landmark = excluded.landmark
        RETURNING 4::BIGINT, t.cell, t.channel, t.source, 0::BIGINT, t.landmark, t.mass, t.squares, t.reward, t.reward_squares,
            t.n_positive, t.n_negative, t.n_neutral, t.last_positive, t.last_negative, t.last_neutral;
        GET DIAGNOSTICS fitting = ROW_COUNT;
        IF fitting <> jsonb_array_length(c->'tallies') THEN -- the tallies that are stated at another landmark
            RETURN QUERY INSERT INTO heed_tally AS t (
                cell, channel, source, landmark, mass, squares, reward, reward_squares, n_positive, n_negative, n_neutral,
                last_positive, last_negative, last_neutral, lost_positive, lost_negative, lost_neutral, lost_source
            )
            SELECT e->>0, e->>1, e->>2, CAST(e->>3 AS BIGINT), CAST(e->>4 AS DOUBLE PRECISION), CAST(e->>5 AS DOUBLE PRECISION),
                CAST(e->>6 AS DOUBLE PRECISION), CAST(e->>7 AS DOUBLE PRECISION), CAST(e->>8 AS BIGINT), CAST(e->>9 AS BIGINT),
                CAST(e->>10 AS BIGINT), CAST(e->>11 AS BIGINT), CAST(e->>12 AS BIGINT), CAST(e->>13 AS BIGINT),
                CAST(e->>14 AS BIGINT), CAST(e->>15 AS BIGINT), CAST(e->>16 AS BIGINT), CAST(e->>17 AS BIGINT)
            FROM jsonb_array_elements(c->'tallies') AS e
            ON CONFLICT (cell, channel, source) DO UPDATE SET
                mass = heed_scaled(t.mass, excluded.landmark - t.landmark)
                    + heed_scaled(excluded.mass, t.landmark - excluded.landmark),
                squares = heed_scaled(t.squares, excluded.landmark - t.landmark)
                    + heed_scaled(excluded.squares, t.landmark - excluded.landmark),
                reward = heed_scaled(t.reward, excluded.landmark - t.landmark)
                    + heed_scaled(excluded.reward, t.landmark - excluded.landmark),
                reward_squares = heed_scaled(t.reward_squares, excluded.landmark - t.landmark)
                    + heed_scaled(excluded.reward_squares, t.landmark - excluded.landmark),
                n_positive = t.n_positive + excluded.n_positive,
                n_negative = t.n_negative + excluded.n_negative,
                n_neutral = t.n_neutral + excluded.n_neutral,
                landmark = greatest(t.landmark, excluded.landmark),
                last_positive = greatest(t.last_positive, excluded.last_positive),
                last_negative = greatest(t.last_negative, excluded.last_negative),
                last_neutral = greatest(t.last_neutral, excluded.last_neutral),
                lost_positive = greatest(t.lost_positive, excluded.lost_positive),
                lost_negative = greatest(t.lost_negative, excluded.lost_negative),
                lost_neutral = greatest(t.lost_neutral, excluded.lost_neutral),
                lost_source = greatest(t.lost_source, excluded.lost_source)
            WHERE t.landmark <> excluded.landmark
            RETURNING 4::BIGINT, t.cell, t.channel, t.source, 0::BIGINT, t.landmark, t.mass, t.squares, t.reward, t.reward_squares,
                t.n_positive, t.n_negative, t.n_neutral, t.last_positive, t.last_negative, t.last_neutral;
        END IF;
    END IF;
    IF c->'history' IS NOT NULL THEN
        INSERT INTO heed_observation (cell, id, happened, source, observation, recorded)
        SELECT e->>0, e->>1, CAST(e->>2 AS BIGINT), e->>3, e->>4, moment
        FROM jsonb_array_elements(c->'history') AS e;
    END IF;
    IF c->'parts' IS NOT NULL THEN
        RETURN QUERY SELECT 1::BIGINT, t.cell, t.channel, t.source, (SELECT k.half_life FROM heed_cell AS k WHERE k.cell = t.cell),
                t.landmark, t.mass, t.squares, t.reward, t.reward_squares,
                t.n_positive, t.n_negative, t.n_neutral, t.last_positive, t.last_negative, t.last_neutral
            FROM heed_tally AS t WHERE t.cell = ANY (ARRAY(SELECT e FROM jsonb_array_elements_text(c->'parts') AS e))
            ORDER BY 2, 3, 4;
    END IF;

    IF c->'changed' IS NOT NULL OR c->'added' IS NOT NULL THEN
        commit_no := nextval('heed_revision');
    END IF;
    IF c->'changed' IS NOT NULL THEN
        WITH w AS MATERIALIZED (
            SELECT r.seq, r.kind, r.at AS at_before, r.keys AS keys_before, e->>0 AS ref, CAST(e->>2 AS BIGINT) AS at, e->>3 AS keys,
                e->>4 AS body
            FROM jsonb_array_elements(c->'changed') AS e CROSS JOIN LATERAL (
                SELECT seq, kind, at, keys FROM heed_record WHERE ref = e->>0 OFFSET 0
            ) AS r
        ), removed AS (
            DELETE FROM heed_record WHERE seq = ANY (ARRAY(SELECT seq FROM w WHERE body IS NULL))
        ), written AS (
            UPDATE heed_record AS r SET revision = commit_no, at = w.at, keys = w.keys, body = w.body
            FROM w
            WHERE r.seq = ANY (ARRAY(SELECT seq FROM w WHERE body IS NOT NULL)) AND r.seq = w.seq
        ), after AS (
            SELECT e->>1 AS hash, w.at, w.seq FROM jsonb_array_elements(c->'keys') AS e JOIN w ON w.ref = e->>0
            WHERE w.at <> w.at_before OR w.keys <> w.keys_before
        ), before AS (
            SELECT DISTINCT heed_hash(w.kind, k) AS hash, w.at_before AS at, w.seq
            FROM w CROSS JOIN LATERAL jsonb_array_elements_text(CAST(w.keys_before AS JSONB)) AS k
            WHERE w.body IS NULL OR w.at <> w.at_before OR w.keys <> w.keys_before AND NOT CAST(w.keys AS JSONB) ? k
        ), lost AS (
            DELETE FROM heed_key WHERE ctid = ANY (ARRAY(
                SELECT k.ctid FROM before AS b CROSS JOIN LATERAL (
                    SELECT ctid FROM heed_key WHERE hash = b.hash AND at = b.at AND seq = b.seq OFFSET 0
                ) AS k WHERE NOT EXISTS (SELECT 1 FROM after AS a WHERE a.hash = b.hash AND a.at = b.at AND a.seq = b.seq)))
        )
        INSERT INTO heed_key (hash, at, seq) SELECT hash, at, seq FROM after ON CONFLICT DO NOTHING;
    END IF;
    IF c->'added' IS NOT NULL THEN
        WITH added AS (
            -- numbered as they come, and inserted in one order everywhere
            INSERT INTO heed_record (seq, ref, kind, id, at, revision, keys, body) OVERRIDING SYSTEM VALUE
            SELECT seq, e->>0, e->>1, e->>2, CAST(e->>3 AS BIGINT), commit_no, e->>4, e->>5
            FROM (SELECT nextval('heed_record_seq_seq') AS seq, e FROM jsonb_array_elements(c->'added') AS e) AS numbered
            ORDER BY e->>0
            ON CONFLICT DO NOTHING RETURNING ref, at, seq
        ), keyed AS (
            INSERT INTO heed_key (hash, at, seq)
            SELECT e->>1, added.at, added.seq FROM jsonb_array_elements(c->'keys') AS e JOIN added ON added.ref = e->>0
        )
        -- e->>6 is whether the record may be there, and e->>7 the number up to which its kind has room.
        SELECT array_agg(e->>0) FILTER (WHERE added.ref IS NULL),
            bool_or(added.ref IS NULL AND CAST(e->>6 AS BIGINT) = 0 OR added.seq > CAST(e->>7 AS BIGINT))
        INTO there, wrong
        FROM jsonb_array_elements(c->'added') AS e LEFT JOIN added ON added.ref = e->>0;
        IF wrong THEN
            RAISE EXCEPTION 'heed: this commit is made in steps' USING ERRCODE = 'HD001';
        END IF;
        RETURN QUERY SELECT 2::BIGINT, e, '', '', 0::BIGINT, 0::BIGINT, 0::FLOAT8, 0::FLOAT8, 0::FLOAT8, 0::FLOAT8,
            0::BIGINT, 0::BIGINT, 0::BIGINT, 0::BIGINT, 0::BIGINT, 0::BIGINT FROM unnest(there) AS e;
    END IF;

    -- The versions of kinds are raised last, so that they are held for as short as possible.
    IF c->'versions' IS NOT NULL THEN
        INSERT INTO heed_record AS r (ref, kind, id, at, revision, keys, body)
        SELECT e->>0, 'heed.version', e->>1, 0, (e->>2)::BIGINT, '[]', 'null' FROM jsonb_array_elements(c->'versions') AS e
        ON CONFLICT (ref) DO UPDATE SET revision = r.revision + excluded.revision;
    END IF;
    RETURN QUERY SELECT 0::BIGINT, 'done', '', '', CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT), commit_no,
        0::FLOAT8, 0::FLOAT8, 0::FLOAT8, 0::FLOAT8, 0::BIGINT, 0::BIGINT, 0::BIGINT, 0::BIGINT, 0::BIGINT, 0::BIGINT;
END $$;

-- The function works on these tables, whatever the search_path of its caller is.
DO $$ BEGIN
    EXECUTE format('ALTER FUNCTION heed_commit(JSONB) SET search_path = %I', current_schema());
END $$;
