package show

import (
	"fmt"
	"os"
	"strings"
)

// Progress returns a function that draws a bar on standard error, and only if that is a terminal.
func Progress() func(done, of int) {
	if info, err := os.Stderr.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return func(int, int) {}
	}
	return func(done, of int) {
		const width = 40
		full := done * width / of
		fmt.Fprintf(os.Stderr, "\r%s%s %d/%d", strings.Repeat("█", full), strings.Repeat("░", width-full), done, of)
		if done == of {
			fmt.Fprintf(os.Stderr, "\r%*s\r", width+20, "")
		}
	}
}
