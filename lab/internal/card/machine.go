package card

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
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
	m := Machine{Commit: said(ctx, "git", "rev-parse", "--short=12", "HEAD"), CPU: cpu(),
		Cores: runtime.NumCPU()}
	m.Go = runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
	if m.Commit == "" {
		m.Commit = "unknown"
	} else if said(ctx, "git", "status", "--porcelain", "--untracked-files=no") != "" {
		m.Commit += " and changes"
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			for _, driver := range drivers {
				if dep.Path == driver {
					m.Engines = append(m.Engines, dep.Path+" "+dep.Version)
				}
			}
		}
	}
	return withPostgres(ctx, m)
}

func withPostgres(ctx context.Context, m Machine) Machine {
	programs, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	for _, program := range append(programs, "postgres") {
		if version := said(ctx, program, "--version"); version != "" {
			m.Engines = append(m.Engines, version)
			return m
		}
	}
	m.Engines = append(m.Engines, "no PostgreSQL")
	return m
}

// said returns what a program prints, or "".
func said(ctx context.Context, name string, args ...string) string {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func cpu() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, found := strings.Cut(line, ":"); found &&
				strings.TrimSpace(name) == "model name" {
				return strings.TrimSpace(value)
			}
		}
	}
	return "a processor of unknown name"
}
