package natsstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/store"
)

// A place names the stream that has the log. It is the one message of a stream that is changed only
// by who read it, so two handles can't both go on.
type place struct {
	Generation uint64
	ID         string // random, because no name of a stream is used twice
	revision   uint64 // of the message
}

func (s *Store) stream(of place) string {
	return fmt.Sprintf("%s_%d_%s", s.cfg.Name, of.Generation, of.ID)
}

// subject returns the subject of a stream of the store. "*" matches all.
func (s *Store) subject(stream string) string { return "heed." + s.cfg.Name + "." + stream }

func (s *Store) placeStream() string { return s.cfg.Name + "_place" }

func (s *Store) create(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	_, err := s.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: name, Subjects: []string{s.subject(name)}, Replicas: s.cfg.Replicas,
		Storage: jetstream.FileStorage, AllowDirect: name != s.placeStream(), AllowAtomicPublish: true,
		Description: "heed: a store. Do not change it.",
	})
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return nil
	}
	return err
}

// place reads where the log is. A new store has the zero place.
func (s *Store) place(ctx context.Context) (at place, err error) {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	name := s.placeStream()
	stream, err := s.js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if err = s.create(ctx, name); err == nil {
			stream, err = s.js.Stream(ctx, name)
		}
	}
	if err != nil {
		return at, err
	}
	s.mu.Lock()
	s.told, s.asked = stream.CachedInfo().TimeStamp, s.tick()
	s.mu.Unlock()
	message, err := stream.GetLastMsgForSubject(ctx, s.subject(name))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return at, nil
	}
	if err == nil {
		err = json.Unmarshal(message.Data, &at)
		at.revision = message.Sequence
	}
	return at, err
}

// find finds the log for the handle: when it begins, and in the next generation if the log has
// ended.
func (s *Store) find(ctx context.Context) error {
	if s.state != nil && s.state.moved == nil && !s.lost {
		return nil
	}
	at, err := s.place(ctx)
	ended := s.state != nil && s.state.moved != nil && s.state.revision == at.revision
	if err == nil && (at.Generation == 0 || ended) {
		at, err = s.begin(ctx, at)
	}
	if err == nil && (s.state == nil || s.state.ID != at.ID) {
		err = s.enter(ctx, at)
	}
	s.lost = s.lost && err != nil
	return err
}

// begin writes the state as the beginning of a stream, and makes that the log if no other handle
// was quicker.
func (s *Store) begin(ctx context.Context, from place) (place, error) {
	first := &state{header: header{Kept: s.cfg.Kept.Retention}}
	if from.Generation > 0 {
		first = s.state
	}
	text, err := s.dumped(first)
	if err != nil {
		return from, err
	}
	next := place{Generation: from.Generation + 1, ID: nuid.Next()}
	name := s.stream(next)
	if err := s.create(ctx, name); err != nil {
		return from, err
	}
	if _, _, err := s.publish(ctx, name, text); err != nil {
		return from, err
	}
	text, err = json.Marshal(next)
	if err != nil {
		return from, err
	}
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	ack, err := s.js.Publish(ctx, s.subject(s.placeStream()), text,
		jetstream.WithExpectLastSequence(from.revision))
	if err != nil {
		if refused := (*jetstream.APIError)(nil); errors.As(err, &refused) {
			_ = s.js.DeleteStream(ctx, name) // else it goes with the streams of before
		}
		return from, err
	}
	next.revision = ack.Sequence
	return next, nil
}

// enter reads the beginning of a stream.
func (s *Store) enter(ctx context.Context, at place) error {
	return s.read(ctx, at, 0, func(text []byte, last uint64) (bool, error) {
		begun, err := s.load(at, text)
		if err != nil {
			return false, err
		}
		begun.sequence = last
		s.mu.Lock()
		defer s.mu.Unlock()
		s.state = begun
		return true, nil
	})
}

// clean deletes the streams of generations before, and what other handles have begun in vain.
func (s *Store) clean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	names := s.js.StreamNames(ctx, jetstream.WithStreamListSubject(s.subject("*")))
	var failed error
	for name := range names.Name() {
		rest, _ := strings.CutPrefix(name, s.cfg.Name+"_")
		number, _, _ := strings.Cut(rest, "_")
		generation, err := strconv.ParseUint(number, 10, 64)
		if err != nil || generation > s.state.Generation || name == s.stream(s.state.place) {
			continue
		}
		err = s.js.DeleteStream(ctx, name)
		if !errors.Is(err, jetstream.ErrStreamNotFound) {
			failed = errors.Join(failed, err)
		}
	}
	return errors.Join(failed, names.Err())
}

// append puts an entry into the log, and applies the log up to it. It reports whether the entry may
// have been sent. It repeats what failed, which is safe: the number of the entry counts once.
func (s *Store) append(ctx context.Context, actions []json.RawMessage, move *store.Retention) (
	bool, error,
) {
	s.number++
	s.results = nil
	text, err := json.Marshal(entry[json.RawMessage]{
		Format: format, Session: s.session, Number: s.number, Actions: actions, Move: move,
	})
	if err != nil {
		return false, err
	}
	known := func() bool { return s.state != nil && s.state.Sessions[s.session].Number > 0 }
	sent, before := false, known()
	for wait := shortPause; ; wait = min(2*wait, longPause) {
		if err = s.find(ctx); err == nil {
			if sent && before && !known() { // the log may have the entry, and forgot the handle
				return sent, fmt.Errorf("%w: it was away for %d generations", heed.ErrUnavailable, mostIdle)
			}
			var last uint64
			var tried bool
			last, tried, err = s.publish(ctx, s.stream(s.state.place), text)
			sent = sent || tried
			if err == nil {
				err = s.catchUp(ctx, last, text)
			}
			if err == nil && s.state.Sessions[s.session].Number >= s.number {
				return sent, nil
			}
			s.lost = err != nil
		}
		if errors.Is(err, heed.ErrDamaged) {
			return sent, err
		}
		if ended := s.pause(ctx, wait); ended != nil {
			return sent, fmt.Errorf("%w: %w", heed.ErrUnavailable, cmp.Or(err, ended))
		}
	}
}

const (
	shortPause = 500 * time.Microsecond
	longPause  = 200 * time.Millisecond
	attempt    = 2 * time.Second // how long a handle waits for one reply
)

func (s *Store) pause(ctx context.Context, wait time.Duration) error {
	select {
	case <-time.After(wait):
	case <-ctx.Done():
	}
	return ctx.Err()
}

// maxParts is how many messages a server takes as one.
const maxParts = 1000

// partSize returns how long a message may be.
func (s *Store) partSize() int {
	const room = 4 << 10 // for the headers
	return int(min(cmp.Or(s.js.Conn().MaxPayload(), 1<<20), 1<<20)) - room
}

const headerMore = "Heed-More" // of a message that does not end its text

// publish appends a text to a stream: as one message, or as several that are stored all or not at
// all. It returns the sequence of the last one, and whether it may be stored if there is an error.
func (s *Store) publish(ctx context.Context, stream string, text []byte) (uint64, bool, error) {
	parts := slices.Collect(slices.Chunk(text, s.partSize()))
	if len(parts) > maxParts {
		return 0, false, &heed.SizeError{What: "state", Size: len(text), Most: maxParts * s.partSize()}
	}
	id := nuid.Next()
	for i, part := range parts {
		m := nats.NewMsg(s.subject(stream))
		m.Data = part
		last := i == len(parts)-1
		if len(parts) > 1 {
			m.Header.Set("Nats-Batch-Id", id)
			m.Header.Set("Nats-Batch-Sequence", strconv.Itoa(i+1))
		}
		if !last {
			m.Header.Set(headerMore, "1")
		} else if i > 0 {
			m.Header.Set("Nats-Batch-Commit", "1")
		}
		reply, err := s.request(ctx, m)
		var ack struct {
			Error    *jetstream.APIError `json:"error"`
			Sequence uint64              `json:"seq"`
		}
		if err == nil && len(reply.Data) > 0 {
			err = json.Unmarshal(reply.Data, &ack)
		}
		if err == nil && ack.Error != nil {
			err = ack.Error
		}
		if err != nil {
			return 0, last && !errors.Is(err, nats.ErrNoResponders), err
		}
		if last {
			return ack.Sequence, true, nil
		}
	}
	return 0, false, nil
}

func (s *Store) request(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	return s.js.Conn().RequestMsgWithContext(ctx, m)
}

// catchUp applies the log up to a message, which ends the text that this handle sent.
func (s *Store) catchUp(ctx context.Context, last uint64, text []byte) error {
	parts := uint64((len(text) + s.partSize() - 1) / s.partSize())
	if s.state.sequence+parts == last { // all of it is the handle's own
		return s.apply(text, last)
	}
	if s.state.sequence >= last {
		return nil
	}
	return s.read(ctx, s.state.place, s.state.sequence, func(text []byte, at uint64) (bool, error) {
		return at >= last, s.apply(text, at)
	})
}

// read gives the texts of a stream to a function, each with its last message, until the function
// reports that it has what it needs. It begins behind a message. A text in several messages is
// stored whole, so no other text is between them.
func (s *Store) read(ctx context.Context, from place, after uint64,
	take func(text []byte, last uint64) (done bool, err error)) error {
	var text []byte
	for wait, gaps := shortPause, 0; ; wait = min(2*wait, longPause) {
		messages, err := s.fetch(ctx, s.stream(from), after+1)
		switch {
		case err != nil:
		case len(messages) > 0 && messages[0].sequence == after+1:
			wait, gaps = shortPause, 0
		case gaps == 10: // so it was not lost on its way
			err = fmt.Errorf("message %d of %s is missing: %w", after+1, s.stream(from), heed.ErrDamaged)
		default: // the server that was asked is behind, if there are none
			gaps += min(len(messages), 1)
			err = s.pause(ctx, wait)
		}
		if err != nil {
			return err
		}
		for _, m := range messages {
			if m.sequence != after+1 {
				break
			}
			after++
			if text = append(text, m.text...); m.more {
				continue
			}
			if done, err := take(text, after); done || err != nil {
				return err
			}
			text = nil
		}
	}
}

// A message is one of a stream.
type message struct {
	text     []byte
	more     bool // the next message goes on with the text
	sequence uint64
}

// fetch reads the next messages of a stream, from any server that has it. If the server is behind,
// there may be no messages. All fetches share a subscription, because a commit of three handles
// takes two to three times as long with one for each, which jetstreamext.GetBatch makes.
func (s *Store) fetch(ctx context.Context, stream string, from uint64) (all []message, err error) {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	nc, o := s.js.Conn(), s.js.Options()
	prefix := cmp.Or(o.APIPrefix, jetstream.DefaultAPIPrefix)
	if o.Domain != "" {
		prefix = "$JS." + o.Domain + ".API"
	}
	if s.replies == nil {
		s.inbox = nc.NewInbox()
		if s.replies, err = nc.SubscribeSync(s.inbox + ".*"); err != nil {
			return nil, err
		}
		runtime.AddCleanup(s, func(of *nats.Subscription) { _ = of.Unsubscribe() }, s.replies)
	}
	s.fetches++
	inbox := fmt.Sprint(s.inbox, ".", s.fetches)
	subject := strings.TrimSuffix(prefix, ".") + ".DIRECT.GET." + stream
	body := fmt.Appendf(nil, `{"seq":%d,"batch":256,"max_bytes":8388608}`, from)
	if err := nc.PublishRequest(subject, inbox, body); err != nil {
		return nil, err
	}
	for {
		m, err := s.replies.NextMsgWithContext(ctx)
		if err != nil && len(all) > 0 { // what came is progress, however slow the network is
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if m.Subject != inbox { // a reply to a request that was given up
			continue
		}
		switch m.Header.Get("Status") {
		case "":
		case "204", "404": // the end, or the server has no such message yet
			return all, nil
		default:
			return nil, fmt.Errorf("reading the log: %s", m.Header.Get("Description"))
		}
		sequence, err := strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("reading the log: %w", err)
		}
		all = append(all, message{m.Data, m.Header.Get(headerMore) != "", sequence})
	}
}
