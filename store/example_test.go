package store_test

import (
	"context"
	"fmt"
	"time"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

// A Ticket is a record of the host.
type Ticket struct {
	ID     string
	Opened time.Time
	Agent  string
	Closed bool
}

// Tickets are found by their agent.
var tickets = store.View[Ticket]{
	Kind: store.Kind{Name: "shop.ticket", Caused: []string{"Agent"}},
	Place: func(t Ticket) (id string, at time.Time, keys []string) {
		return t.ID, t.Opened, []string{store.PersonKey(t.Agent)}
	},
}

// A Tally counts what an agent has closed.
type Tally struct {
	Agent  string
	Since  time.Time
	Closed int
}

var tallies = store.View[Tally]{
	Kind: store.Kind{Name: "shop.tally", Caused: []string{"Agent"}, Whole: true},
	Place: func(t Tally) (id string, at time.Time, keys []string) {
		return store.IDOf(t.Agent), t.Since, []string{store.PersonKey(t.Agent)}
	},
}

var morning = time.Date(2026, 3, 14, 9, 0, 0, 0, time.UTC)

// A host keeps its records next to the records of heed, and finds them by their keys.
func ExampleView() {
	ctx := context.Background()
	st := &memstore.Store{}
	if err := st.Declare(ctx, tickets.Kind); err != nil {
		panic(err)
	}
	_, err := st.Commit(ctx, store.Batch{Records: []store.Record{
		tickets.Record(Ticket{ID: "T-1", Opened: morning, Agent: "ann"}, 0),
		tickets.Record(Ticket{ID: "T-2", Opened: morning.Add(time.Hour), Agent: "ann"}, 0),
	}})
	if err != nil {
		panic(err)
	}
	ofAnn := store.Query{Keys: []string{store.PersonKey("ann")}, Oldest: true}
	for row, err := range tickets.Find(ctx, st, ofAnn) {
		if err != nil {
			panic(err)
		}
		fmt.Println(row.Value.ID, row.Value.Opened.Format(time.TimeOnly))
	}
	// Output:
	// T-1 09:00:00
	// T-2 10:00:00
}

// closeTicket is a step over two kinds of records. It takes the Tx first, so that others can have
// it in a step of theirs. It is safe to repeat: a ticket that is closed is not counted again.
func closeTicket(tx *store.Tx, id, agent string) error {
	tally := store.IDOf(agent)
	tx.Want(store.Wants{Refs: []store.Ref{tickets.Ref(id), tallies.Ref(tally)}}) // one round trip
	ticket, err := tickets.In(tx, id)
	if err != nil {
		return err
	}
	if ticket.Revision == 0 || ticket.Value.Closed {
		return nil
	}
	count, err := tallies.In(tx, tally)
	if err != nil {
		return err
	}
	if count.Revision == 0 {
		count.Value = Tally{Agent: agent, Since: morning}
	}
	ticket.Value.Closed = true
	count.Value.Closed++
	tickets.Put(tx, ticket.Value, ticket.Revision)
	tallies.Put(tx, count.Value, count.Revision)
	return nil
}

// Both records are written, or none. If another writer changes one of them first, the step runs
// again.
func ExampleDo() {
	ctx := context.Background()
	st := &memstore.Store{}
	if err := st.Declare(ctx, tickets.Kind, tallies.Kind); err != nil {
		panic(err)
	}
	opened := store.Batch{Records: []store.Record{
		tickets.Record(Ticket{ID: "T-1", Opened: morning, Agent: "ann"}, 0),
		tickets.Record(Ticket{ID: "T-2", Opened: morning, Agent: "ann"}, 0),
	}}
	if _, err := st.Commit(ctx, opened); err != nil {
		panic(err)
	}
	// Two tickets in one step: the second call sees what the first has put.
	err := store.Do(ctx, st, func(tx *store.Tx) error {
		for _, id := range []string{"T-1", "T-2", "T-1"} {
			if err := closeTicket(tx, id, "ann"); err != nil {
				return err
			}
		}
		tx.Then(func(_ store.Receipt, err error) {
			if err == nil {
				fmt.Println("committed")
			}
		})
		return nil
	})
	if err != nil {
		panic(err)
	}
	row, err := tallies.Get(ctx, st, store.IDOf("ann"))
	if err != nil {
		panic(err)
	}
	fmt.Println(row.Value.Agent, "has closed", row.Value.Closed)
	// Output:
	// committed
	// ann has closed 2
}
