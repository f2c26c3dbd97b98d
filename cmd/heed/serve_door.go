package main

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"log"
	"net/http"
	"net/url"
	"strings"
)

const signInPath = "/sign-in"

// A door knows who may come in. It is immutable once it is open.
type door struct {
	people  []entrant
	cookie  string // its name. Browsers send cookies to all ports of a host
	secure  bool   // by HTTPS
	address string
}

// An entrant is somebody with a token.
type entrant struct {
	name, token string
	sum         [sha256.Size]byte // of the token
}

func entrantOf(name, token string) entrant { return entrant{name, token, sha256.Sum256([]byte(token))} }

func newToken() string { return rand.Text() + rand.Text() }

var errStranger = errors.New("nobody has this token")

// whose returns who has a token. It takes as long for a wrong one as for a right one.
func (d *door) whose(token string) (string, error) {
	sum, name, err := sha256.Sum256([]byte(token)), "", errStranger
	for _, p := range d.people {
		if subtle.ConstantTimeCompare(sum[:], p.sum[:]) == 1 {
			name, err = p.name, nil
		}
	}
	return name, err
}

// identify says who sent a request: by the token of a program, or by the cookie of a browser.
func (d *door) identify(r *http.Request) (string, error) {
	if given := r.Header.Get("Authorization"); given != "" {
		scheme, token, _ := strings.Cut(given, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return "", errStranger
		}
		return d.whose(token)
	}
	cookie, err := r.Cookie(d.cookie)
	if err != nil {
		return "", err
	}
	return d.whose(cookie.Value)
}

// signIn makes of the token in a link a cookie, so that the token does not stay in the address.
func (d *door) signIn(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	token := r.URL.Query().Get("token")
	if _, err := d.whose(token); err != nil {
		http.Error(w, "This link is not valid, or no longer: heed serve prints a new one whenever it starts.", http.StatusUnauthorized)
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: d.cookie, Value: token, Path: "/", HttpOnly: true, Secure: d.secure, SameSite: http.SameSiteLaxMode,
	})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// A greeting says where the server is, and how each person comes in.
type greeting struct {
	URL    string    `json:"url"`
	Store  string    `json:"store"`
	People []invited `json:"people"`
}

type invited struct {
	Person string `json:"person"`
	Link   string `json:"link,omitempty"` // to pages
	Token  string `json:"token"`
}

func (d *door) greeting(what string) greeting {
	g := greeting{URL: "http://" + d.address, Store: what}
	if d.secure {
		g.URL = "https://" + d.address
	}
	for _, p := range d.people {
		g.People = append(g.People, invited{p.name, g.URL + signInPath + "?token=" + url.QueryEscape(p.token), p.token})
	}
	return g
}

// greet prints the greeting.
func (d *door) greet(p *printer, what string) {
	g := d.greeting(what)
	p.line("heed serves %s at %s. Ctrl-C ends it.", show(what), g.URL)
	for _, one := range g.People {
		p.printf("\nThe pages, as %s:\n  %s\nPrograms, as %s, send the header:\n  Authorization: Bearer %s\n", show(one.Person), one.Link, show(one.Person), one.Token)
	}
}

// quiet drops what net/http would log: clients that go away are no news.
var quiet = log.New(io.Discard, "", 0)
