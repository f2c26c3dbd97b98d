package web

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/store"
)

// A keyed is a call with an idempotency key. It can only be read with the key and the body, which
// the store never has.
type keyed struct {
	ID     string    `json:"id"`     // derived from the caller and the key
	Proof  []byte    `json:"proof"`  // of the call and its body, made with the key
	At     time.Time `json:"at"`     // when it began
	Until  time.Time `json:"until"`  // when somebody else may take it over that is not done
	Done   bool      `json:"done"`   // the answer is there
	Status int       `json:"status"` // of the answer
	Answer []byte    `json:"answer"` // sealed with the key and the body
}

const (
	keyFor   = 24 * time.Hour
	mostKeys = 100_000
	maxKey   = 255 // bytes
	// keyLease is how long a call is left to the process that carries it out. The process renews the
	// lease every keyBeat. If it has died, another process takes the call over after six seconds. If
	// it is alive, the call stays with it, as long as clocks differ by less than four seconds.
	keyLease = 6 * time.Second
	keyBeat  = 2 * time.Second
)

var keyedCalls = store.View[keyed]{
	Kind:  store.Kind{Name: "web.call", Limits: store.Limits{For: keyFor, Most: mostKeys}},
	Place: func(c keyed) (string, time.Time, []string) { return c.ID, c.At, nil },
}

// A claim is a keyed call that this process carries out.
type claim struct {
	st       store.Store
	call     keyed
	revision uint64
	seal     cipher.AEAD
}

// claimKey begins a call with an idempotency key, or returns the answer that it was given before.
func (a *api) claimKey(ctx context.Context, person, key string, what, body []byte) (
	*claim, *reply, error,
) {
	if !a.declared.Load() {
		if err := a.cfg.Store.Declare(ctx, keyedCalls.Kind); err != nil {
			return nil, nil, err
		}
		a.declared.Store(true)
	}
	c := &claim{st: a.cfg.Store}
	if err := c.derive(person, key, what, body); err != nil {
		return nil, nil, err
	}
	answer, err := c.begin(ctx, a.cfg.Now())
	if err != nil || answer != nil || c.revision > 0 {
		return c, answer, err
	}
	return nil, nil, &view.Fault{Sort: view.Conflicting, After: time.Second,
		Detail: "A request with this idempotency key is being carried out. Send it again."}
}

// derive makes of the key what the store may have.
func (c *claim) derive(person, key string, what, body []byte) error {
	c.call.ID = store.IDOf("web.call", person, key)
	mac := func(label string) []byte {
		h := hmac.New(sha256.New, []byte(key))
		h.Write(fmt.Appendf(nil, "%s\n%d %s\n%d ", label, len(what), what, len(body)))
		h.Write(body)
		return h.Sum(nil)
	}
	c.call.Proof = mac("proof")
	block, err := aes.NewCipher(mac("seal"))
	if err == nil {
		c.seal, err = cipher.NewGCMWithRandomNonce(block)
	}
	return err
}

// event returns the id of the event that the call is about, if its body has no id. So code that
// takes the call over, after a crash, gets the answer that is there already.
func (c *claim) event() string { return "key-" + store.IDOf(c.call.ID, string(c.call.Proof)) }

// begin looks for the call, and takes it if it is free.
func (c *claim) begin(ctx context.Context, now time.Time) (*reply, error) {
	var s store.Snapshot
	if err := c.st.Read(ctx, &s, nil, []store.Ref{keyedCalls.Ref(c.call.ID)}); err != nil {
		return nil, err
	}
	before, err := keyedCalls.Of(s.Records[0])
	known := before.Revision > 0 && now.Sub(before.Value.At) < keyFor
	switch {
	case err != nil:
		return nil, err
	case known && !hmac.Equal(before.Value.Proof, c.call.Proof):
		return nil, &view.Fault{Sort: keyReused,
			Detail: "The same Idempotency-Key came with another body, or for another call."}
	case known && before.Value.Done:
		text, err := c.seal.Open(nil, nil, before.Value.Answer, []byte(c.call.ID))
		return &reply{before.Value.Status, text}, err
	case known && now.Before(before.Value.Until): // somebody carries it out
		return nil, nil
	}
	c.call.At, c.call.Until = now, now.Add(keyLease)
	receipts, err := c.st.Commit(ctx, store.Batch{
		Records: []store.Record{keyedCalls.Record(c.call, before.Revision)}})
	if errors.Is(err, heed.ErrConflict) { // somebody else was quicker
		return nil, nil
	}
	if err == nil {
		c.revision = receipts[0].Revision
	}
	return nil, err
}

// hold renews the lease of a call until stop is called.
func (c *claim) hold(ctx context.Context, now func() time.Time) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		beat := time.NewTicker(keyBeat)
		defer beat.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-beat.C:
				c.renew(context.WithoutCancel(ctx), now())
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// renew writes a later end of the lease. If that fails, the next try or the next process goes on.
func (c *claim) renew(ctx context.Context, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, keyBeat)
	defer cancel()
	c.call.Until = now.Add(keyLease)
	receipts, err := c.st.Commit(ctx, store.Batch{
		Records: []store.Record{keyedCalls.Record(c.call, c.revision)}})
	if err == nil {
		c.revision = receipts[0].Revision
		return
	}
	row, err := keyedCalls.Get(ctx, c.st, c.call.ID)
	if err == nil && row.Value.At.Equal(c.call.At) && row.Value.Until.Equal(c.call.Until) {
		c.revision = row.Revision // the commit was made, and its reply lost
	}
}

// keep keeps the answer for those who ask again. It tries until the context ends, because another
// answer under the same key would be worse than no answer.
func (c *claim) keep(ctx context.Context, got reply) error {
	c.call.Done, c.call.Status, c.call.Answer = true, got.status,
		c.seal.Seal(nil, nil, got.text, []byte(c.call.ID))
	for wait := 50 * time.Millisecond; ; wait *= 2 {
		_, err := c.st.Commit(ctx, store.Batch{Records: []store.Record{keyedCalls.Record(c.call,
			c.revision)}})
		if errors.Is(err, heed.ErrConflict) {
			return c.kept(ctx)
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// kept returns nil if the store has this very answer: a commit before has come to an end, and its
// error was an error of the connection.
func (c *claim) kept(ctx context.Context) error {
	before, err := keyedCalls.Get(ctx, c.st, c.call.ID)
	if err == nil && !bytes.Equal(before.Value.Answer, c.call.Answer) {
		err = heed.ErrConflict
	}
	return err
}

// release gives the key back, because the call failed.
func (c *claim) release(ctx context.Context) error {
	_, err := c.st.Commit(ctx, store.Batch{Records: []store.Record{keyedCalls.Removal(c.call.ID,
		c.revision)}})
	return err
}
