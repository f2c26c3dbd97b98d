package main

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/heedhq/heed/evidence"
	naming "github.com/heedhq/heed/internal/text"
)

const signInPath = "/sign-in"

// A door decides who may come in. It is immutable once it is open.
type door struct {
	URL      string    `json:"url"`
	Store    string    `json:"store"`
	Entrants []entrant `json:"people"`
	cookie   string    // its name. Browsers send cookies to all ports of a host
	secure   bool      // by HTTPS
}

// An entrant is somebody with a secret: a program with its token, or a person with a link. A secret
// that was given to the command is not printed.
type entrant struct {
	Person  string `json:"person"`
	Link    string `json:"link,omitempty"`  // to pages
	Token   string `json:"token,omitempty"` // of a program
	Given   string `json:"given,omitempty"` // the variable that has the secret
	program bool
	sum     [sha256.Size]byte // of the secret
}

func (d *door) add(name, secret string, program bool, given string) {
	e := entrant{Person: name, Given: given, program: program, sum: sha256.Sum256([]byte(secret))}
	switch {
	case given != "":
	case program:
		e.Token = secret
	default:
		e.Link = d.URL + signInPath + "?token=" + url.QueryEscape(secret)
	}
	d.Entrants = append(d.Entrants, e)
}

// goodToken is what goes into a header and a cookie as it is.
var goodToken = regexp.MustCompile(`^[A-Za-z0-9._~-]{16,}$`)

// admit lets programs in by tokens, and people by links. No secret is good for two.
func (d *door) admit(l *listening) error {
	for _, of := range []struct {
		variable, pairs string
		program         bool
	}{{"HEED_TOKENS", l.Tokens, true}, {"HEED_LINKS", l.Links, false}} {
		for pair := range strings.SplitSeq(of.pairs, ",") {
			name, secret, ok := strings.Cut(pair, "=")
			if of.pairs == "" {
				continue
			}
			if !ok || name == "" || !goodToken.MatchString(secret) {
				return &usageError{of.variable + " must be as kim=TOKEN,lee=TOKEN, with tokens of 16 or " +
					"more letters and digits"}
			}
			if err := checkName(of.variable, name); err != nil {
				return err
			}
			if slices.ContainsFunc(d.Entrants, func(e entrant) bool {
				return e.sum == sha256.Sum256([]byte(secret))
			}) {
				return &usageError{"two of HEED_TOKENS and HEED_LINKS have the same token: a token " +
					"identifies one person"}
			}
			d.add(name, secret, of.program, of.variable)
		}
	}
	invited := l.As
	if len(invited) == 0 && l.Tokens == "" && l.Links == "" {
		invited = []string{actor("")}
	}
	for _, name := range invited {
		if err := checkName("--as", name); err != nil {
			return err
		}
		d.add(name, rand.Text()+rand.Text(), false, "")
		d.add(name, rand.Text()+rand.Text(), true, "")
	}
	return nil
}

// checkName refuses the name of somebody whose decisions package feedback would refuse.
func checkName(where, name string) error {
	err := evidence.CheckText("name", name)
	switch {
	case name == "":
		return &usageError{where + " must name a person"}
	case err == nil:
		_, err = naming.CanonicalName(name)
	}
	if err != nil {
		return &usageError{fmt.Sprintf("%s: nobody can decide by the name %q: %v", where, name, err)}
	}
	return nil
}

var errStranger = errors.New("nobody has this token")

// whose returns who has a secret. It takes as long for a wrong one as for a right one.
func (d *door) whose(secret string, program bool) (string, error) {
	sum, name, err := sha256.Sum256([]byte(secret)), "", errStranger
	for _, e := range d.Entrants {
		if subtle.ConstantTimeCompare(sum[:], e.sum[:]) == 1 && e.program == program {
			name, err = e.Person, nil
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
		return d.whose(token, true)
	}
	cookie, err := r.Cookie(d.cookie)
	if err != nil {
		return "", err
	}
	return d.whose(cookie.Value, false)
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
	if _, err := d.whose(secret, false); err != nil {
		http.Error(w, "This link is not valid, or no longer: heed serve prints a new one whenever it "+
			"starts.", http.StatusUnauthorized)
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: d.cookie, Value: secret, Path: "/", HttpOnly: true, Secure: d.secure,
		SameSite: http.SameSiteLaxMode})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}
