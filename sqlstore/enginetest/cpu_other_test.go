//go:build !unix

package enginetest_test

import (
	"testing"
	"time"
)

// cpuTime is not known on this system.
func cpuTime(b *testing.B) time.Duration {
	b.Skip("the time of processors is measured on Unix alone")
	return 0
}
