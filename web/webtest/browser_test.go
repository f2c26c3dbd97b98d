package webtest

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const howTo = "no browser: set HEED_BROWSER to the path of Chromium or Chrome, or install one " +
	"(apt-get install chromium)"

// errNoBrowser says that the tests can't run here.
var errNoBrowser = errors.New(howTo)

// findBrowser returns the path of the browser.
func findBrowser(setting string, look func(string) (string, error)) (string, error) {
	if setting != "" && setting != "require" {
		found, err := look(setting)
		if err != nil {
			return "", fmt.Errorf("HEED_BROWSER: %w", err)
		}
		return found, nil
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome",
		"google-chrome-stable", "chrome"} {
		if found, err := look(name); err == nil {
			return found, nil
		}
	}
	return "", errNoBrowser
}

var (
	browser context.Context // has the one browser of all tests
	missing error           // why there is none
	long    = os.Getenv("HEED_LONG") != ""
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	setting := os.Getenv("HEED_BROWSER")
	found, err := findBrowser(setting, exec.LookPath)
	if err != nil {
		fmt.Fprintln(os.Stderr, "WARNING:", err)
		if setting != "" {
			return 1
		}
		missing = err
		return m.Run()
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(found),
		chromedp.DisableGPU,
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-quic", true),
		chromedp.Flag("hide-scrollbars", false))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	defer end()
	ctx, end := chromedp.NewContext(allocator)
	defer end()
	if err := chromedp.Do(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "the browser does not start:", err)
		return 1
	}
	browser = ctx
	return m.Run()
}

// hooks count what no page may do. They are there before any script of a page.
const hooks = `
window.ran = []; // scripts that data brought along
for (const name of ["h4ck", "alert", "confirm", "prompt", "print", "open"]) window[name] = () => { window.ran.push(name); };
window.violated = [];
document.addEventListener("securitypolicyviolation", (e) => window.violated.push(e.violatedDirective + " " + e.blockedURI));`

// A tab is a page in a browser of its own: it shares no cookies with other tabs. At the end of its
// test, nothing may have been written to its console.
type tab struct {
	*testing.T
	ctx  context.Context
	site *site

	mu     sync.Mutex
	faults []string
	spared []string // words of faults that the test expects
}

// open opens a tab for a person.
func (s *site) open(t *testing.T, person string) *tab {
	t.Helper()
	if missing != nil {
		t.Skip(missing)
	}
	b := &tab{T: t, site: s}
	ctx, end := chromedp.NewContext(browser, chromedp.WithNewBrowserContext(),
		chromedp.WithListener(b.hear))
	t.Cleanup(func() {
		assert.Empty(t, b.heard(), "the console of %s", person)
		end()
	})
	b.ctx = ctx
	require.NoError(t, chromedp.Do(ctx))
	_, err := chromedp.Run(ctx, func(ctx context.Context, t *chromedp.Target) (any, error) {
		return cdp.Call(ctx, t, page.AddScriptToEvaluateOnNewDocument,
			page.AddScriptToEvaluateOnNewDocumentParams{Source: hooks})
	})
	require.NoError(t, err)
	b.size(1280)
	b.visit("/as/" + url.PathEscape(person))
	return b
}

// hear takes down what the console gets.
func (b *tab) hear(event any) {
	var fault string
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			fault = fmt.Sprint(e.Entry.Source, ": ", e.Entry.Text, " ", e.Entry.URL)
		}
	case *runtime.EventConsoleAPICalled:
		fault = "console." + string(e.Type)
		for _, arg := range e.Args {
			fault += " " + cmp.Or(arg.Description, string(arg.Value))
		}
	case *runtime.EventExceptionThrown:
		fault = e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			fault += " " + x.Description
		}
	}
	if fault != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.faults = append(b.faults, fault)
	}
}

// heard returns the faults so far, without those that are spared.
func (b *tab) heard() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.faults), func(fault string) bool {
		return slices.ContainsFunc(b.spared, func(words string) bool {
			return strings.Contains(fault,
				words)
		})
	})
}

func (b *tab) spare(words string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spared = append(b.spared, words)
}

// gone reports whether a step failed because the browser renewed the document after the step had
// found its node there. Such a step typed and clicked nothing: the browser is asked for the node
// before that.
func gone(err error) bool {
	var refused *cdproto.Error
	return errors.As(err, &refused) && refused.Code == -32000 &&
		refused.Message == "Could not find node with given id"
}

// within carries out a step within a time, and again while its node is gone, because a step finds
// the node that is there now.
func (b *tab) within(about string, step func(context.Context) error) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	err := step(ctx)
	for gone(err) {
		err = step(ctx)
	}
	require.NoError(b, err, about)
}

// do carries out a step within a time.
func (b *tab) do(step chromedp.Action[chromedp.Void]) {
	b.Helper()
	b.within("", func(ctx context.Context) error { return chromedp.Do(ctx, step) })
}

// eval returns the value of an expression in a page.
func eval[T any](b *tab, expression string) T {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	require.NoError(b, err, expression)
	return value
}

func (b *tab) visit(path string) {
	b.Helper()
	b.do(chromedp.Navigate(b.site.url + path))
}

// size sets the width of the page.
func (b *tab) size(width int64) {
	b.Helper()
	b.area(width, 900)
}

func (b *tab) area(width, height int64) {
	b.Helper()
	b.do(chromedp.EmulateViewport(width, height))
}

// scheme chooses "light" or "dark".
func (b *tab) scheme(name string) {
	b.Helper()
	_, err := chromedp.Run(b.ctx, func(ctx context.Context, t *chromedp.Target) (any, error) {
		return cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
		})
	})
	require.NoError(b, err)
}

// picture returns the page as a PNG: all of it, or as much as fits.
func (b *tab) picture(all bool) []byte {
	b.Helper()
	r, err := chromedp.Run(b.ctx, func(ctx context.Context,
		t *chromedp.Target) (page.CaptureScreenshotResult, error) {
		return cdp.Call(ctx, t, page.CaptureScreenshot,
			page.CaptureScreenshotParams{CaptureBeyondViewport: &all})
	})
	require.NoError(b, err)
	return r.Data
}

// until waits for an expression to be true.
func (b *tab) until(expression string) {
	b.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(b.ctx, 10*time.Second)
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		cancel()
		if err == nil && ok { // a page that is just going has no answer
			return
		}
		if time.Now().After(end) {
			require.Fail(b, "it never was: "+expression, "%v\n%s", err, b.text())
		}
	}
}

// text is what a person can read.
func (b *tab) text() string {
	b.Helper()
	return eval[string](b, "document.body.innerText")
}

// says waits for words on the page.
func (b *tab) says(words string) {
	b.Helper()
	b.until(fmt.Sprintf("document.body.innerText.includes(%q)", words))
}

// fill types a text into a field.
func (b *tab) fill(selector, text string) {
	b.Helper()
	b.within(selector, func(ctx context.Context) error {
		return chromedp.Do(ctx, chromedp.SendKeys(chromedp.CSS(selector), text))
	})
}

// click clicks on an element, and waits for the page that it leads to.
func (b *tab) click(selector string) {
	b.Helper()
	b.within(selector, func(ctx context.Context) error {
		_, err := chromedp.RunResponse(ctx, chromedp.Click(chromedp.CSS(selector)))
		return err
	})
}

func TestGone(t *testing.T) {
	stale := &cdproto.Error{Code: -32000, Message: "Could not find node with given id"}
	assert.True(t, gone(stale))
	assert.True(t, gone(fmt.Errorf("focus: %w", stale)))
	for _, err := range []error{nil, errNoBrowser, context.DeadlineExceeded,
		&cdproto.Error{Code: -32000, Message: "Node does not have a layout object"},
		&cdproto.Error{Code: -32602, Message: stale.Message}} {
		assert.False(t, gone(err), err)
	}
}

func TestFindBrowser(t *testing.T) {
	only := func(names ...string) func(string) (string, error) {
		return func(name string) (string, error) {
			if slices.Contains(names, name) {
				return "/bin/" + name, nil
			}
			return "", exec.ErrNotFound
		}
	}
	for _, c := range []struct {
		setting string
		here    []string
		want    string
		err     error
	}{
		{"", []string{"chromium"}, "/bin/chromium", nil},
		{"require", []string{"google-chrome"}, "/bin/google-chrome", nil},
		{"mine", []string{"chromium", "mine"}, "/bin/mine", nil},
		{"mine", []string{"chromium"}, "", exec.ErrNotFound},
		{"require", nil, "", errNoBrowser},
	} {
		found, err := findBrowser(c.setting, only(c.here...))
		assert.Equal(t, c.want, found, c)
		assert.ErrorIs(t, err, c.err, c)
	}
}
