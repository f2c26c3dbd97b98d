package card

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// A Machine is where a run took place, and what was run.
type Machine struct {
	Commit  string // of the source tree, with "and changes" if it has been edited
	CPU     string
	Cores   int
	Go      string
	Engines []string // the databases, with their versions
}

// drivers are the modules whose versions a report names.
var drivers = []string{"modernc.org/sqlite", "github.com/ncruces/go-sqlite3",
	"github.com/jackc/pgx/v5"}

// ThisMachine looks at this machine, and at the source tree in the current directory.
func ThisMachine(ctx context.Context) Machine {
	m := Machine{Commit: cmp.Or(said(ctx, "git", "rev-parse", "--short=12", "HEAD"), "unknown"),
		CPU: cpu(), Cores: runtime.NumCPU()}
	m.Go = runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
	if said(ctx, "git", "status", "--porcelain", "--untracked-files=no") != "" {
		m.Commit += " and changes"
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if slices.Contains(drivers, dep.Path) {
				m.Engines = append(m.Engines, dep.Path+" "+dep.Version)
			}
		}
	}
	server := "no PostgreSQL"
	programs, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	for _, program := range slices.Backward(append(programs, "postgres")) {
		server = cmp.Or(said(ctx, program, "--version"), server)
	}
	m.Engines = append(m.Engines, server)
	return m
}

// said returns what a program prints, or "".
func said(ctx context.Context, name string, args ...string) string {
	out, _ := exec.CommandContext(ctx, name, args...).Output()
	return strings.TrimSpace(string(out))
}

func cpu() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "a processor of unknown name"
}
