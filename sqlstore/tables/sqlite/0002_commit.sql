-- PostgreSQL gets a function here that commits in one statement. SQLite needs none, as it has no round trips.
UPDATE heed_store SET version = 4;
