package web

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/view"
)

//go:embed templates/*.html static/style.css static/app.js static/icon.svg
var files embed.FS

// asset answers a request for a file that pages load, and reports whether it was one. Anybody may
// have them: a page of refusal needs its style.
func asset(w http.ResponseWriter, r *http.Request) bool {
	name := "static" + r.URL.Path
	_, err := fs.Stat(files, name)
	if err != nil || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	w.Header().Set("Cache-Control", "public, max-age=600")
	http.ServeFileFS(w, r, files, name)
	return true
}

// A frame is what each page needs. Data is what the page itself shows.
type frame struct {
	Title  string
	Here   string // the path of the entry in the menu that is marked
	Person string // "" if the person is unknown
	Menu   []entry
	Prefix string
	Done   string // what was just done, as templates/parts.html has it
	// Problem is why an input is refused, and Typed is that input.
	Problem string
	Typed   url.Values
	Now     time.Time
	Data    any
}

// An entry is one of the menu.
type entry struct{ Path, Name string }

// templates returns the pages, each with the frame. They are parsed with the first page that is
// asked for, and escape all data by its context.
var templates = sync.OnceValue(func() map[string]*template.Template {
	all := make(map[string]*template.Template)
	frame := template.Must(template.New("frame").Funcs(funcs).ParseFS(files, "templates/frame.html",
		"templates/parts.html"))
	found, err := files.ReadDir("templates")
	for _, file := range found {
		name := strings.TrimSuffix(file.Name(), ".html")
		if name == "frame" || name == "parts" {
			continue
		}
		all[name] = template.Must(template.Must(frame.Clone()).ParseFS(files, "templates/"+file.Name()))
	}
	template.Must(frame, err)
	return all
})

// A page is one that is read. Its template has the name of its path.
type page struct {
	path, here  string // here is the entry in the menu that it belongs to
	title, menu string // menu is its name there, or ""
	part        string // of an agent, without which it is not shown
	read        reader
}

// A reader reads what a page shows. Data that has a title replaces the page's.
type reader func(*http.Request, *view.Source) (data any, err error)

// The parts of an agent, as package view calls them.
const ofRules, ofArms, ofHeuristics, ofWays = "rules", "arms", "heuristics", "ways of working"

// The pages that people decide on.
var (
	proposalPage   = page{"/proposal", "/inbox", "Proposal", "", ofRules, proposal}
	correctionPage = page{"/correction", "/inbox", "Correction", "", ofRules, correction}
	rulePage       = page{"/rule", "/rules", "Rule", "", ofRules, rule}
	answerPage     = page{"/answer", "/answers", "Answer", "", "", explained}
)

// allPages are the pages, in the order of the menu.
var allPages = []page{
	{"/", "/", "Overview", "Overview", "", home}, {"/gain", "/", "What learning gains", "", "", gain},
	{"/inbox", "/inbox", "Inbox", "Inbox", ofRules, inbox}, proposalPage, correctionPage,
	{"/rules", "/rules", "Rules", "Rules", ofRules, listOf((*view.Source).Rules)}, rulePage,
	{"/arms", "/arms", "Arms", "Arms", ofArms, listOf((*view.Source).Segments)},
	{"/segment", "/arms", "Segment", "", ofArms, segment},
	{"/item", "/arms", "Item", "", ofArms, item},
	{"/heuristics", "/heuristics", "Heuristics", "Heuristics", ofHeuristics,
		listOf((*view.Source).Heuristics)},
	{"/heuristic", "/heuristics", "Heuristic", "", ofHeuristics, heuristic},
	{"/ways", "/ways", "Ways of working", "Ways", ofWays, listOf((*view.Source).Ways)},
	{"/way", "/ways", "Way of working", "", ofWays, way},
	{"/answers", "/answers", "Answers", "Answers", "", listOf((*view.Source).Answers)}, answerPage,
	{"/changes", "/changes", "What changed", "Changes", "", listOf((*view.Source).Changes)},
}

// name returns the name of the page's template.
func (p *page) name() string { return cmp.Or(p.path[1:], "home") }

// frame reads the page.
func (p *page) frame(r *http.Request, v *view.Source) (frame, error) {
	if !v.Has(p.part) {
		return frame{}, &heed.InputError{Field: p.part, Reason: "are not here. " +
			view.Lacks(p.part).Detail}
	}
	data, err := p.read(r, v)
	f := frame{Title: p.title, Here: p.here, Data: data}
	if own, ok := data.(interface{ title() string }); ok {
		f.Title = own.title()
	}
	return f, err
}

// pages registers the pages.
func (h *Handler) pages() {
	for _, p := range allPages {
		path := p.path
		if path == "/" {
			path = "/{$}"
		}
		h.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			f, err := p.frame(r, h.view())
			if err != nil {
				h.fail(w, r, p.title, err)
				return
			}
			f.Done = h.done(r)
			h.render(w, r, http.StatusOK, p.name(), f)
		})
	}
	h.decisions()
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		h.failed(w, r, http.StatusNotFound, "There is no such page.")
	})
}

func (h *Handler) menu() (all []entry) {
	v := h.view()
	for _, p := range allPages {
		if p.menu != "" && v.Has(p.part) {
			all = append(all, entry{p.path, p.menu})
		}
	}
	return all
}

// render writes a page. It is made as a whole first, so that a failure never leaves half of it.
func (h *Handler) render(w http.ResponseWriter, r *http.Request, status int, name string, v frame) {
	v.Person, v.Prefix, v.Now = personOf(r), h.cfg.Prefix, h.cfg.Now()
	if v.Person != "" {
		v.Menu = h.menu()
	}
	var page bytes.Buffer
	if err := templates()[name].ExecuteTemplate(&page, "frame", v); err != nil {
		h.watch.Failed(r.Context(), "page", err)
		http.Error(w, "The page could not be made.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(page.Bytes())
}

// failed shows a page with what is wrong.
func (h *Handler) failed(w http.ResponseWriter, r *http.Request, status int, text string) {
	h.render(w, r, status, "error", frame{Title: http.StatusText(status), Data: text})
}

// fail shows an error of a part. The text of a failure inside is for the observer alone.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, what string, err error) {
	status, text := statusOf(err)
	if status >= http.StatusInternalServerError {
		h.watch.Failed(r.Context(), what, err)
	}
	h.failed(w, r, status, text)
}

// statusOf returns the status of an error, and what a person may read about it.
func statusOf(err error) (status int, text string) {
	var refused *feedback.RefusedError
	if errors.As(err, &refused) {
		return refusal(refused)
	}
	f := view.FaultOf(err, reflect.TypeFor[struct{}]())
	return sorts[f.Sort].Status, f.Detail
}

const perPage = 25

// An address is made by this package. Texts of others are only in its query, encoded.
type address string

// A listing is a part of a list, with the addresses of the first part and of the next one.
type listing[T any] struct {
	view.List[T]
	First, Next address // "" in the first part, and in the last one
	Search      string
	Query       any  // what is selected
	Any         bool // the request selects something
}

// list returns the part of a list that the parameters of a request select.
func list[P view.Paged[Query], Query, T any](
	r *http.Request, read func(context.Context, Query) (view.List[T], error),
) (l listing[T], err error) {
	var q Query
	given := r.URL.Query()
	l.Any = view.Fill(&q, given)
	l.Query, l.Search = q, given.Get("q")
	after := given.Get("after")
	P(&q).Turn(view.Page{Limit: perPage, After: after, Search: l.Search})
	l.List, err = read(r.Context(), q)
	if l.List.Next != "" {
		given.Set("after", l.List.Next)
		l.Next = address("?" + given.Encode())
	}
	if given.Del("after"); after != "" {
		l.First = address("?" + given.Encode())
	}
	return l, err
}

// listOf returns the reader of a page that is a list.
func listOf[P view.Paged[Query], Query, T any](
	read func(*view.Source, context.Context, Query) (view.List[T], error),
) reader {
	return func(r *http.Request, v *view.Source) (any, error) {
		return list[P](r, func(ctx context.Context, q Query) (view.List[T], error) {
			return read(v, ctx, q)
		})
	}
}

// byID reads what a request names. An empty id is not found.
func byID[T any](r *http.Request, read func(context.Context, string) (T, error)) (T, error) {
	id := r.URL.Query().Get("id")
	if id == "" {
		return *new(T), heed.ErrNotFound
	}
	return read(r.Context(), id)
}
