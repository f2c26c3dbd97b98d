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
	"slices"
	"strings"
)

const signInPath = "/sign-in"

// A door knows who may come in. It is immutable once it is open.
type door struct {
	programs []entrant // by tokens
	people   []entrant // by links
	cookie   string    // its name. Browsers send cookies to all ports of a host
	secure   bool      // by HTTPS
	url      string
}

// An entrant is somebody with a secret.
type entrant struct {
	name, secret string
	given        bool              // by whoever started the command, so it is not printed
	sum          [sha256.Size]byte // of the secret
}

func entrantOf(name, secret string, given bool) entrant {
	return entrant{name, secret, given, sha256.Sum256([]byte(secret))}
}

func newToken() string { return rand.Text() + rand.Text() }

var errStranger = errors.New("nobody has this token")

// whose returns who of some has a secret. It takes as long for a wrong one as for a right one.
func whose(secret string, of []entrant) (string, error) {
	sum, name, err := sha256.Sum256([]byte(secret)), "", errStranger
	for _, p := range of {
		if subtle.ConstantTimeCompare(sum[:], p.sum[:]) == 1 {
			name, err = p.name, nil
		}
	}
	return name, err
}

// isProgram reports whether a request is one of a program. identify knows it by its token alone.
func isProgram(r *http.Request) bool { return r.Header.Get("Authorization") != "" }

// identify says who sent a request: by the token of a program, or by the cookie of a browser.
func (d *door) identify(r *http.Request) (string, error) {
	if isProgram(r) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return "", errStranger
		}
		return whose(token, d.programs)
	}
	cookie, err := r.Cookie(d.cookie)
	if err != nil {
		return "", err
	}
	return whose(cookie.Value, d.people)
}

// signIn makes of the secret in a link a cookie, so that the secret does not stay in the address.
func (d *door) signIn(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "none" && site != "same-origin" {
		http.Error(w, "Another site opened this link, so nobody was signed in. If you want to sign in by it, click into the address bar and press Enter.", http.StatusForbidden)
		return
	}
	secret := r.URL.Query().Get("token")
	if _, err := whose(secret, d.people); err != nil {
		http.Error(w, "This link is not valid, or no longer: heed serve prints a new one whenever it starts.", http.StatusUnauthorized)
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: d.cookie, Value: secret, Path: "/", HttpOnly: true, Secure: d.secure, SameSite: http.SameSiteLaxMode,
	})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// A greeting says where the server is, and how each person comes in.
type greeting struct {
	URL    string    `json:"url"`
	Store  string    `json:"store"`
	People []invited `json:"people"`
}

// An invited has a link, a token, or both. Those that were given to the command are left out.
type invited struct {
	Person string `json:"person"`
	Link   string `json:"link,omitempty"`  // to pages
	Token  string `json:"token,omitempty"` // of a program
}

func (d *door) greeting(what string) greeting {
	g := greeting{URL: d.url, Store: what}
	of := func(name string) *invited {
		i := slices.IndexFunc(g.People, func(one invited) bool { return one.Person == name })
		if i < 0 {
			i, g.People = len(g.People), append(g.People, invited{Person: name})
		}
		return &g.People[i]
	}
	for _, p := range d.people {
		if one := of(p.name); !p.given {
			one.Link = g.URL + signInPath + "?token=" + url.QueryEscape(p.secret)
		}
	}
	for _, p := range d.programs {
		if one := of(p.name); !p.given {
			one.Token = p.secret
		}
	}
	return g
}

// greet prints the greeting.
func (d *door) greet(p *printer, what string) {
	g := d.greeting(what)
	p.line("heed serves %s at %s. Ctrl-C ends it.", show(what), g.URL)
	for _, one := range g.People {
		if one.Link != "" {
			p.printf("\nThe pages, as %s:\n  %s\n", show(one.Person), one.Link)
		}
		if one.Token != "" {
			p.printf("\nPrograms, as %s, send the header:\n  Authorization: Bearer %s\n", show(one.Person), one.Token)
		}
	}
	d.greetGiven(p, d.people, "Signed in by a link with their secret of HEED_LINKS, at "+g.URL+signInPath+"?token=SECRET")
	d.greetGiven(p, d.programs, "Programs with their token of HEED_TOKENS")
}

// greetGiven prints the names of those who have their secret already.
func (d *door) greetGiven(p *printer, of []entrant, how string) {
	var names []string
	for _, one := range of {
		if one.given {
			names = append(names, show(one.name))
		}
	}
	if len(names) > 0 {
		p.printf("\n%s:\n  %s\n", how, strings.Join(names, ", "))
	}
}

// quiet drops what net/http would log: clients that go away are no news.
var quiet = log.New(io.Discard, "", 0)
