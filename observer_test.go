package heed_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed"
)

func TestLogTo(t *testing.T) {
	var log bytes.Buffer
	observe := heed.LogTo(slog.New(slog.NewTextHandler(&log,
		&slog.HandlerOptions{Level: slog.LevelDebug})))
	at := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	for want, n := range map[string]heed.Notice{
		"level=DEBUG msg=heed.Selected Component=strategy/x " +
			"At=2026-11-22T03:00:00.000Z Arm=a": heed.Selected{Component: "strategy/x", At: at, Arm: "a"},
		"level=DEBUG msg=heed.Observed Reward=1":       heed.Observed{Reward: 1},
		"level=DEBUG msg=heed.Observed Arm=a Reward=0": heed.Observed{Arm: "a"},
		"level=DEBUG msg=heed.Counted Channel=undo Reward=0 " +
			"Weight=2": heed.Counted{Channel: "undo", Weight: 2},
		"level=DEBUG msg=heed.Duplicate What=click": heed.Duplicate{What: "click"},
		"level=DEBUG msg=heed.Decided Path=model " +
			"Took=1s": heed.Decided{Path: "model", Took: time.Second},
		"level=DEBUG msg=heed.Swept Count=3": heed.Swept{Count: 3},
		"level=INFO " +
			"msg=heed.Changed What=proposed Subject=r": heed.Changed{What: "proposed", Subject: "r"},
		"level=INFO msg=heed.Changed What=needs_approval Approvals=1 " +
			"Quorum=2": heed.Changed{What: "needs_approval", Approvals: 1, Quorum: 2},
		"level=INFO " +
			"msg=heed.Changed What=ambiguous Subject=f": heed.Changed{What: "ambiguous", Subject: "f"},
		"level=INFO " +
			"msg=heed.Changed What=activated Subject=r": heed.Changed{What: "activated", Subject: "r"},
		"level=INFO msg=heed.Changed What=retired Subject=r " +
			"Reason=revoked": heed.Changed{What: "retired", Subject: "r", Reason: "revoked"},
		"level=WARN " +
			"msg=heed.Changed What=harmful Subject=r": heed.Changed{What: "harmful", Subject: "r"},
		"level=WARN " +
			"msg=heed.Changed What=inverted Subject=p": heed.Changed{What: "inverted", Subject: "p"},
		"level=WARN msg=heed.DeadLettered ID=e Reason=\"no " +
			"JSON\"": heed.DeadLettered{ID: "e", Reason: "no JSON"},
		"level=ERROR msg=heed.Outage What=store Err=refused": heed.Outage{
			What: "store", Err: errors.New("refused"),
		},
		"level=INFO msg=heed.Restored What=store Since=2026-11-22T03:00:00.000Z": heed.Restored{
			What: "store", Since: at,
		},
		"level=ERROR msg=heed.Failed What=model Err=\"it is not there\"": heed.Failed{
			What: "model", Err: errors.New("it is not there"),
		},
	} {
		log.Reset()
		observe(context.Background(), n)
		assert.Contains(t, log.String(), want)
	}
	log.Reset()
	observe(heed.WithTenant(context.Background(), "acme"), heed.Swept{Count: 3})
	assert.Contains(t, log.String(), "msg=heed.Swept Tenant=acme Count=3")
	log.Reset()
	heed.LogTo(slog.New(slog.NewTextHandler(&log, nil)))(context.Background(), heed.Selected{})
	assert.Empty(t, log.String(), "below the logger's level")
}

// An observer of a host's own counts what it is interested in.
func ExampleObserver() {
	counts := map[string]int{}
	// guard counts with a mutex where several goroutines use heed
	observer := heed.Observer(func(_ context.Context, n heed.Notice) {
		if n, ok := n.(heed.Observed); ok {
			counts[n.Arm]++
		}
	})
	// heed does this: set the Observer in a package's Config
	observer(context.Background(), heed.Observed{Arm: "small"})
	fmt.Println(counts["small"])
	// Output: 1
}
