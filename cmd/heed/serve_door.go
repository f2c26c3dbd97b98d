package main

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const signInPath = "/sign-in"

// A door decides who may come in. It is immutable once it is open.
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
	given        bool              // to the command, so it is not printed
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

// isProgram reports whether a request is one of a program. identify recognises it by its token
// alone.
func isProgram(r *http.Request) bool { return r.Header.Get("Authorization") != "" }

// identify returns who sent a request: by the token of a program, or by the cookie of a browser.
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
		http.Error(w, "Another site opened this link, so nobody was signed in. If you want to sign in "+
			"by it, click into the address bar and press Enter.", http.StatusForbidden)
		return
	}
	secret := r.URL.Query().Get("token")
	if _, err := whose(secret, d.people); err != nil {
		http.Error(w, "This link is not valid, or no longer: heed serve prints a new one whenever it "+
			"starts.", http.StatusUnauthorized)
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: d.cookie, Value: secret, Path: "/", HttpOnly: true, Secure: d.secure,
		SameSite: http.SameSiteLaxMode,
	})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// A greeting is the address of the server, and how each person comes in. Secrets that were given to
// the command are not in it, but the names are: Links and Tokens.
type greeting struct {
	URL    string    `json:"url"`
	Store  string    `json:"store"`
	People []invited `json:"people"`
	Links  []string  `json:"-"`
	Tokens []string  `json:"-"`
}

// An invited has a link, a token, or both.
type invited struct {
	Person string `json:"person"`
	Link   string `json:"link,omitempty"`  // to pages
	Token  string `json:"token,omitempty"` // of a program
}

func (d *door) greeting(what string) greeting {
	g := greeting{URL: d.url, Store: what}
	of := func(e entrant, given *[]string) *invited {
		i := slices.IndexFunc(g.People, func(one invited) bool { return one.Person == e.name })
		if i < 0 {
			i, g.People = len(g.People), append(g.People, invited{Person: e.name})
		}
		if e.given {
			*given = append(*given, e.name)
		}
		return &g.People[i]
	}
	for _, p := range d.people {
		if one := of(p, &g.Links); !p.given {
			one.Link = g.URL + signInPath + "?token=" + url.QueryEscape(p.secret)
		}
	}
	for _, p := range d.programs {
		if one := of(p, &g.Tokens); !p.given {
			one.Token = p.secret
		}
	}
	return g
}
