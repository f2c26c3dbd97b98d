// Command heed is for people who run an agent that learns with heed. It shows what was learned and
// how sure that is, and changes it when somebody gives a reason. It reads the tables of package
// sqlstore, in SQLite or PostgreSQL. It needs no configuration of the host.
//
// Every command has a --help with examples. cmd/heed/README.md shows the most important ones.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/charmbracelet/x/term"

	"github.com/heedhq/heed"
)

// The exit codes.
const (
	done   = 0
	failed = 1 // the command failed, or was interrupted
	misuse = 2 // it was not called properly
)

type commands struct {
	DB      string  `name:"db" env:"HEED_DB" placeholder:"FILE|DSN"`
	Tenant  string  `env:"HEED_TENANT" placeholder:"NAME"`
	Agent   string  `env:"HEED_AGENT" placeholder:"NAME"`
	JSON    bool    `name:"json"`
	Now     instant `env:"HEED_NOW" placeholder:"TIME"`
	Version kong.VersionFlag

	Overview   overviewCommand    `cmd:"" default:"1"`
	Strategy   strategyCommands   `cmd:""`
	Confidence confidenceCommands `cmd:""`
	Patterns   patternsCommand    `cmd:""`
	Rules      rulesCommands      `cmd:""`
	Answers    answersCommand     `cmd:""`
	Import     pastCommand        `cmd:""`
	MCP        mcpCommand         `cmd:"" name:"mcp"`
	Serve      serveCommand       `cmd:""`
	Doctor     doctorCommand      `cmd:""`
	Store      storeCommands      `cmd:""`
}

// newParser returns the grammar of the command line.
func newParser(c *commands, out, errOut *os.File) (*kong.Kong, error) {
	parser, err := kong.New(c, kong.Name("heed"),
		kong.Description("Show, explain and change what an agent has learned with heed."),
		kong.Writers(out, errOut),
		kong.Vars{"version": version()}, kong.Help(help),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, WrapUpperBound: 100}))
	if err == nil {
		describe(parser.Model.Node)
	}
	return parser, err
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	err := run(ctx, os.Args[1:])
	stop()
	if errors.Is(err, context.Canceled) {
		err = errInterrupted
	}
	code := done
	if err != nil {
		fmt.Fprintln(os.Stderr, "heed: "+oneLine(err))
		code = failed
	}
	if errors.As(err, new(*usageError)) || errors.As(err, new(*kong.ParseError)) {
		code = misuse
	}
	os.Exit(code)
}

func run(ctx context.Context, args []string) error {
	var c commands
	parser, err := newParser(&c, os.Stdout, os.Stderr)
	if err != nil {
		return err
	}
	if len(args) > 0 && args[0] == "help" {
		args = append(slices.Clone(args[1:]), "--help")
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return hint(err)
	}
	width, _, _ := term.GetSize(os.Stdout.Fd()) // a pipe has none
	out := &printer{w: os.Stdout, width: width}
	words := parsed.Selected().FullPath()
	if refuses(words, "agent") {
		for _, given := range parsed.Path {
			if given.Flag != nil && given.Flag.Name == "agent" {
				return &usageError{words + " is for all agents, and not for an --agent"}
			}
		}
		c.Agent = "" // of the environment
	}
	if c.Tenant != "" && refuses(words, "tenant") {
		return &usageError{words + " is for the whole store, and not for a --tenant"}
	}
	err = parsed.Run(&session{&c, ctx, parsed.Selected().Name, out, nil, false})
	return flagged(err, parsed.Selected())
}

// flagged has the fault of an input name the flag of the command that it is about.
func flagged(err error, of *kong.Node) error {
	var input *heed.InputError
	if !errors.As(err, &input) {
		return err
	}
	for _, flag := range of.Flags {
		if strings.EqualFold(input.Field, flag.Name) {
			return &usageError{"--" + flag.Name + " " + input.Reason}
		}
	}
	return err
}

// agentless are the commands that are for all agents of a store. The first ones, as many as
// tenantless, are for all tenants.
var agentless = []string{
	"heed doctor", "heed store migrate", "heed store backup", "heed store import",
	"heed store export", "heed store forget", "heed store audit"}

const tenantless = 4

// refuses reports whether a command refuses a flag that all commands have.
func refuses(command, flag string) bool {
	i := slices.Index(agentless, command)
	return i >= 0 && (flag == "agent" || flag == "tenant" && i < tenantless)
}

// help prints the help of a command without the flags that it refuses.
func help(o kong.HelpOptions, c *kong.Context) error {
	for _, flag := range c.Model.Flags {
		flag.Hidden = c.Selected() != nil && refuses(c.Selected().FullPath(), flag.Name)
	}
	return kong.DefaultHelpPrinter(o, c)
}

// hint names the help to read.
func hint(err error) error {
	var parse *kong.ParseError
	if !errors.As(err, &parse) || parse.Context == nil {
		return err
	}
	node := parse.Context.Selected()
	if errors.As(err, new(*heed.InputError)) {
		return flagged(err, node)
	}
	unexpected := strings.HasPrefix(err.Error(), "unexpected argument")
	switch {
	case node == nil:
		node = parse.Context.Model.Node
	case unexpected && node.Parent.DefaultCmd == node: // it may be a mistyped command
		node = node.Parent
	}
	if unexpected && len(node.Children) > 0 && !strings.Contains(err.Error(), "did you mean") {
		names := texts(node.Children, func(n *kong.Node) string { return n.Name })
		err = fmt.Errorf("%w, commands are %s", err, strings.Join(names, ", "))
	}
	return fmt.Errorf("%w: see %s --help", err, node.FullPath())
}

// version returns the version of heed's module, which contains the commit if the build recorded it.
func version() string {
	info, _ := debug.ReadBuildInfo()
	if info == nil || info.Main.Version == "" {
		return "heed (devel)"
	}
	return "heed " + info.Main.Version
}

// errInterrupted reports that a signal ended the command.
var errInterrupted = errors.New("interrupted")

// A usageError reports that a command was not called properly.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

// oneLine writes an error so that it takes one line, and no more of a terminal than that.
func oneLine(err error) string { return escaped(strings.ReplaceAll(err.Error(), "\n", "; ")) }

// helpText has what --help prints of each command: sections that begin with "# " and the command's
// name. Its lines that begin with ": " are the command's summary, and the help of its arguments and
// flags behind their names. The others are the text below the summary. The section "changes" is for
// the flags of every command that changes something.
//
//go:embed help.txt
var helpText string

// describe gives each command its section of the help.
func describe(root *kong.Node) {
	sections := make(map[string]string)
	for section := range strings.SplitSeq("\n"+helpText, "\n# ") {
		name, text, _ := strings.Cut(section, "\n")
		sections[name] = text
	}
	_ = kong.Visit(root, func(node kong.Visitable, next kong.Next) error {
		if n, ok := node.(*kong.Node); ok {
			describeOne(n, sections["changes"]+"\n"+sections[n.FullPath()])
		}
		return next(nil)
	})
}

func describeOne(n *kong.Node, section string) {
	values := make(map[string]*kong.Value)
	for _, flag := range n.Flags {
		values["--"+flag.Name] = flag.Value
	}
	for _, arg := range n.Positional {
		values[arg.Name] = arg
	}
	var text []string
	for line := range strings.SplitSeq(section, "\n") {
		help, is := strings.CutPrefix(line, ": ")
		name, about, _ := strings.Cut(help, " ")
		switch value := values[name]; {
		case !is:
			text = append(text, line)
		case value != nil:
			value.Help = about
		case !strings.HasPrefix(name, "--"):
			n.Help = help
		}
	}
	n.Detail = strings.TrimSpace(strings.Join(text, "\n"))
}
