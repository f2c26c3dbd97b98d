package text

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"strings"
	"time"
)

// A PseudonymKey derives the pseudonyms of people who were forgotten. The same name always has the
// same pseudonym in one store, so a person who was forgotten and comes back can be recognized.
// Anybody who has the key can check whether a pseudonym belongs to a name. The zero key is the key
// of a store that has not forgotten anybody yet.
type PseudonymKey struct {
	Secret []byte    `json:"secret"`
	Since  time.Time `json:"since"` // when the store made it
}

// NewPseudonymKey returns a random key.
func NewPseudonymKey(at time.Time) PseudonymKey {
	k := PseudonymKey{Secret: make([]byte, sha256.Size), Since: at.UTC().Truncate(time.Microsecond)}
	_, _ = rand.Read(k.Secret) // never fails
	return k
}

const pseudonymPrefix = "forgotten-"

var pseudonymText = base32.StdEncoding.WithPadding(base32.NoPadding)

// pseudonymSize is the length of a pseudonym behind its prefix: 130 bits.
const pseudonymSize = 26

// Of returns the pseudonym of a name: the HMAC-SHA256 of the exact name, cut to 26 characters. A
// pseudonym stays as it is, and so does the empty name. Under the zero key every name does.
func (k PseudonymKey) Of(name string) string {
	if len(k.Secret) == 0 || name == "" || IsPseudonym(name) {
		return name
	}
	mac := hmac.New(sha256.New, k.Secret)
	mac.Write([]byte(name))
	sum := strings.ToLower(pseudonymText.EncodeToString(mac.Sum(nil)))
	return pseudonymPrefix + sum[:pseudonymSize]
}

// Same reports whether two names, or pseudonyms, are of the same person.
func (k PseudonymKey) Same(a, b string) bool { return a == b || k.Of(a) == k.Of(b) }

// IsPseudonym reports whether a name has the form of a pseudonym.
func IsPseudonym(name string) bool {
	sum, ok := strings.CutPrefix(name, pseudonymPrefix)
	return ok && len(sum) == pseudonymSize &&
		strings.Trim(sum, "abcdefghijklmnopqrstuvwxyz234567") == ""
}
