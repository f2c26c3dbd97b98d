package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/faults"
	"github.com/heedhq/heed/strategy"
)

// ChoicesConfig bounds a [Choices]. The zero value means the defaults. What is past its time stays until the next
// [Choices.Sweep].
type ChoicesConfig struct {
	// Now is the clock by which records age. nil means time.Now.
	Now func() time.Time
	// For is how long a record is kept from when its choice was made. 0 means 30 days.
	For time.Duration
}

// Choices is a [strategy.Choices] in a database. It is safe for concurrent use.
type Choices struct {
	db  *DB
	cfg ChoicesConfig
}

var _ strategy.Choices = (*Choices)(nil)

// NewChoices returns the store of choices in a database.
func NewChoices(db *DB, cfg ChoicesConfig) (*Choices, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now //nolint:forbidigo // the default clock of a host that gives none
	}
	cfg.For = cmp.Or(cfg.For, 30*24*time.Hour)
	var found faults.List
	found.Check(cfg.For > 0, "For", cfg.For, "must not be negative")
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("sqlstore: %w", err)
	}
	return &Choices{db, cfg}, nil
}

// Config returns the configuration in force.
func (c *Choices) Config() ChoicesConfig { return c.cfg }

// nanos is a moment as it is stored: nanoseconds since 1970, or as near to it as such a number comes.
func nanos(t time.Time) int64 {
	switch seconds := t.Unix(); {
	case seconds > math.MaxInt64/1_000_000_000-1:
		return math.MaxInt64
	case seconds < math.MinInt64/1_000_000_000+1:
		return math.MinInt64
	}
	return t.UnixNano()
}

var addChoice = both(`INSERT INTO heed_choices
	(id, learner, session, item, category, context, made, choice, stage, before, ended, result_at, result_id, result_by)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'pending', 'pending', 0, 0, '', '') ON CONFLICT DO NOTHING`)

// Add implements [strategy.Choices].
func (c *Choices) Add(ctx context.Context, choice strategy.Choice) error {
	text, err := json.Marshal(choice)
	if err != nil {
		return fmt.Errorf("sqlstore: add choice: %w", err)
	}
	return c.write(ctx, "add choice", func(t *tx) error {
		_, err := t.exec(addChoice, choice.ID.String(), choice.Learner(), choice.Session, choice.Item, choice.Category,
			choice.Context, nanos(choice.At), string(text))
		return err
	})
}

func (c *Choices) write(ctx context.Context, what string, do func(*tx) error) error {
	err := ctx.Err()
	if err == nil {
		err = c.db.write(ctx, nil, do)
	}
	if err != nil {
		return fmt.Errorf("sqlstore: %s: %w", what, err)
	}
	return nil
}

const recordColumns = `id, made, stage, ended, choice, result`

// scanRecord scans recordColumns. What can't be decoded is reported by ok.
func scanRecord(scan func(...any) error) (r strategy.Record, id string, made int64, ok bool, err error) {
	var choice string
	var ended int64
	var result sql.NullString
	if err := scan(&id, &made, &r.Stage, &ended, &choice, &result); err != nil {
		return r, id, made, false, err
	}
	r.Ended = ended == 1
	ok = json.Unmarshal([]byte(choice), &r.Choice) == nil && r.Stage.Valid()
	if result.Valid {
		r.Result = &strategy.Result{}
		ok = json.Unmarshal([]byte(result.String), r.Result) == nil && ok
	}
	return r, id, made, ok, nil
}

var getChoice = both(`SELECT ` + recordColumns + ` FROM heed_choices WHERE id = $1`)

// Get implements [strategy.Choices].
func (c *Choices) Get(ctx context.Context, id strategy.ChoiceID) (record strategy.Record, err error) {
	found := false
	err = c.db.read(ctx, func(t *tx) error {
		return t.each(getChoice, []any{id.String()}, func(scan func(...any) error) (err error) {
			record, _, _, found, err = scanRecord(scan)
			if err == nil && !found {
				c.db.damaged.Add(1)
				err = errDamaged
			}
			return err
		})
	})
	if err == nil && !found {
		err = heed.ErrNotFound
	}
	if err != nil {
		return strategy.Record{}, fmt.Errorf("sqlstore: choice %v: %w", id, err)
	}
	return record, nil
}

const (
	choicesWhere = `SELECT ` + recordColumns + ` FROM heed_choices
		WHERE ($1 = '' OR learner = $1) AND ($2 = '' OR session = $2) AND ($3 = '' OR item = $3)
		AND ($4 = '' OR category = $4) AND ($5 = '' OR context = $5) AND ($6 = '' OR stage = $6) AND made >= $7
		AND (made, id) < ($8, $9)`
	newestFirst = ` ORDER BY made DESC, id DESC LIMIT $10`
)

// The lists of choices, by what is looked up in an index. The rest of the filter is compared row by row.
var (
	choicesBySession  = both(choicesWhere + ` AND session = $2` + newestFirst)
	choicesByItem     = both(choicesWhere + ` AND item = $3` + newestFirst)
	choicesByCategory = both(choicesWhere + ` AND category = $4` + newestFirst)
	choicesPending    = both(choicesWhere + ` AND stage = 'pending'` + newestFirst)
	choicesByTime     = both(choicesWhere + newestFirst)
)

func choicesQuery(f *strategy.ChoiceFilter) *query {
	switch {
	case f.Session != "":
		return choicesBySession
	case f.Item != "":
		return choicesByItem
	case f.Stage == strategy.Pending:
		return choicesPending
	case f.Category != "":
		return choicesByCategory
	}
	return choicesByTime
}

// List implements [strategy.Choices].
func (c *Choices) List(ctx context.Context, f strategy.ChoiceFilter) iter.Seq2[strategy.Record, error] {
	return func(yield func(strategy.Record, error) bool) {
		since, until, last, left := int64(math.MinInt64), int64(math.MaxInt64), "~", f.Limit // every UUID is before a tilde
		if !f.Since.IsZero() {
			since = nanos(f.Since)
		}
		if !f.Until.IsZero() {
			until, last = nanos(f.Until), ""
		}
		pages(ctx, yield, func() (page []strategy.Record, err error) {
			rows, size := 0, pageSize
			if f.Limit > 0 {
				size = min(size, left)
			}
			err = c.db.read(ctx, func(t *tx) error {
				args := []any{f.Learner, f.Session, f.Item, f.Category, f.Context, string(f.Stage), since, until, last, size}
				return t.each(choicesQuery(&f), args, func(scan func(...any) error) error {
					record, id, made, ok, err := scanRecord(scan)
					if err != nil {
						return err
					}
					rows++
					until, last = made, id
					if !ok {
						c.db.damaged.Add(1)
						return nil
					}
					page = append(page, record)
					return nil
				})
			})
			left -= rows
			if f.Limit > 0 && left <= 0 {
				return page, cmp.Or(err, errLastPage)
			}
			return page, cmp.Or(err, lastPage(rows))
		})
	}
}

// In an UPDATE, what stands on the right is the row as it was.
var (
	settleChoice = both(`UPDATE heed_choices SET before = stage, stage = 'observed',
		result = CASE WHEN result IS NULL OR (result_at, result_id) < ($1, $2) THEN $3 ELSE result END,
		result_at = CASE WHEN result IS NULL OR (result_at, result_id) < ($1, $2) THEN $1 ELSE result_at END,
		result_id = CASE WHEN result IS NULL OR (result_at, result_id) < ($1, $2) THEN $2 ELSE result_id END,
		result_by = CASE WHEN result IS NULL OR (result_at, result_id) < ($1, $2) THEN $4 ELSE result_by END
		WHERE id = $5 RETURNING before`)
	expireChoice = both(`UPDATE heed_choices SET before = stage,
		stage = CASE WHEN stage = 'pending' THEN 'expired' ELSE stage END WHERE id = $1 RETURNING before`)
	endSession = both(`UPDATE heed_choices SET ended = 1 WHERE session = $1 AND learner = $2`)
)

// Settle implements [strategy.Choices].
func (c *Choices) Settle(ctx context.Context, id strategy.ChoiceID, result strategy.Result) (before strategy.Stage, err error) {
	text, err := json.Marshal(result)
	if err != nil {
		return "", fmt.Errorf("sqlstore: settle choice: %w", err)
	}
	err = c.write(ctx, "settle choice", func(t *tx) error {
		return t.one(settleChoice, []any{nanos(result.At), result.ID, string(text), result.Source, id.String()}, &before)
	})
	return before, err
}

// Expire implements [strategy.Choices].
func (c *Choices) Expire(ctx context.Context, id strategy.ChoiceID) (bool, error) {
	var before strategy.Stage
	err := c.write(ctx, "expire choice", func(t *tx) error {
		return t.one(expireChoice, []any{id.String()}, &before)
	})
	return err == nil && before == strategy.Pending, err
}

// EndSession implements [strategy.Choices].
func (c *Choices) EndSession(ctx context.Context, learner, session string) error {
	return c.write(ctx, "end session", func(t *tx) error {
		_, err := t.exec(endSession, session, learner)
		return err
	})
}

// Choices that somebody is about to change are left for the next sweep.
var oldChoices = either(`DELETE FROM heed_choices WHERE id IN (SELECT id FROM heed_choices WHERE made < $1 LIMIT 10000)`,
	`DELETE FROM heed_choices WHERE id IN (SELECT id FROM heed_choices WHERE made < $1
		ORDER BY made, id LIMIT 10000 FOR UPDATE SKIP LOCKED)`)

// Sweep removes the records that are past their time. It is for the host to call now and then.
func (c *Choices) Sweep(ctx context.Context) error {
	oldest := nanos(c.cfg.Now().Add(-c.cfg.For))
	for again := true; again; {
		err := c.write(ctx, "sweep choices", func(t *tx) error {
			n, err := t.exec(oldChoices, oldest)
			again = n > 0
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
