package text

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
)

// A Hash is the first half of a SHA-256. Stores identify observations and batches, cells and
// records by it, and packages use it as the name of records that must not reveal a person's name.
// As text it is base64 for URLs, without padding.
//
// 128 bits make a chance collision improbable: among 10¹² ids it is about 10⁻¹⁵.
type Hash [16]byte

// HashOf returns the hash of a list of texts. Each text counts with its length, so that no two
// lists have the same hash by being joined alike. A hash does not reveal its texts, unless they can
// be guessed. The form is part of the format of dumps and tables, so it must not change.
func HashOf(texts ...string) Hash {
	buffer := make([]byte, 0, 512) // on the stack
	for _, text := range texts {
		buffer = binary.AppendUvarint(buffer, uint64(len(text)))
		buffer = append(buffer, text...)
	}
	sum := sha256.Sum256(buffer)
	return Hash(sum[:16])
}

// HashOfID returns the hash of the id of an observation or a batch. IDs that differ only after
// their last colon have the first four bytes in common, so that a store keeps what one answer
// counts in few places of its indexes: an answer may count for a hundred heuristics.
func HashOfID(id string) Hash {
	h := HashOf(id)
	if i := strings.LastIndexByte(id, ':'); i >= 0 {
		near := HashOf(id[:i])
		copy(h[:4], near[:4])
	}
	return h
}

// String returns the hash in 22 characters.
func (h Hash) String() string {
	var text [22]byte
	base64.RawURLEncoding.Encode(text[:], h[:])
	return string(text[:])
}

// MarshalText implements [encoding.TextMarshaler].
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (h *Hash) UnmarshalText(text []byte) error {
	if base64.RawURLEncoding.DecodedLen(len(text)) != len(h) {
		return fmt.Errorf("a hash is %d bytes in base64", len(h))
	}
	_, err := base64.RawURLEncoding.Decode(h[:], text)
	return err
}
