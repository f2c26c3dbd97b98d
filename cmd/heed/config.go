package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/heedhq/heed"
)

// readSection reads a section of a TOML file into a struct, and reports whether a file was given that has it. Keys of the
// section that mean nothing are told; other sections are for others.
func readSection(s *session, file, path string, section any) (found bool, err error) {
	if file == "" {
		return false, nil
	}
	text, err := os.ReadFile(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return false, fmt.Errorf("there is no file %s: check --config", file)
	case errors.Is(err, syscall.EISDIR):
		return false, fmt.Errorf("%s is a directory: name a file with --config", file)
	case err != nil:
		return false, err
	}
	found, unknown, err := decodeSection(string(text), strings.Split(path, "."), section)
	if err != nil {
		return false, configFault(file, err)
	}
	if !found {
		warn("%s has no section [%s]: the defaults hold", file, path)
	}
	said := "."
	for _, name := range unknown {
		if strings.HasPrefix(name, said+".") {
			continue // of a table that is unknown itself
		}
		said = name
		hint := ""
		if near := nearestKey(name, keysOf(reflect.TypeOf(section).Elem())); near != "" {
			hint = ": did you mean " + near + "?"
		}
		warn("%s: unknown key %s in [%s]%s", file, name, path, hint)
	}
	return found, nil
}

// nearestKey returns the key that an unknown one looks most like in its first word that is unknown, as far as to that word.
func nearestKey(name string, keys []string) string {
	known := ""
	for _, word := range strings.Split(name, ".") {
		var words []string
		for _, key := range keys {
			if rest, ok := strings.CutPrefix(key, known); ok {
				next, _, _ := strings.Cut(rest, ".")
				words = append(words, next)
			}
		}
		if slices.Contains(words, word) {
			known += word + "."
			continue
		}
		if near := nearest(word, words); len(near) > 0 {
			return known + near[0]
		}
		break
	}
	if near := nearest(name, keys); len(near) > 0 {
		return near[0] // which is in another table
	}
	return ""
}

// decodeSection decodes a section, where there is one, and returns which of its keys are unknown.
func decodeSection(text string, path []string, section any) (found bool, unknown []string, err error) {
	var table map[string]toml.Primitive
	meta, err := toml.Decode(text, &table)
	if err != nil || !meta.IsDefined(path...) {
		return false, nil, err
	}
	last := len(path) - 1
	for _, name := range path[:last] {
		outer := table[name]
		table = nil
		if err := meta.PrimitiveDecode(outer, &table); err != nil {
			return false, nil, err
		}
	}
	if err := meta.PrimitiveDecode(table[path[last]], section); err != nil {
		return false, nil, err
	}
	for _, key := range meta.Undecoded() {
		if name, ok := strings.CutPrefix(key.String(), strings.Join(path, ".")+"."); ok {
			unknown = append(unknown, name)
		}
	}
	return true, unknown, nil
}

// configFault says where in a file a fault is.
func configFault(file string, err error) error {
	var at toml.ParseError
	if !errors.As(err, &at) {
		return fmt.Errorf("%s: %w", file, err)
	}
	if strings.HasPrefix(at.Message, "must ") { // as the types below say it, and no parser
		return fmt.Errorf("%s, line %d: %s %s", file, at.Position.Line, at.LastKey, at.Message)
	}
	return fmt.Errorf("%s, line %d: %s", file, at.Position.Line, at.Message)
}

// keyFaults says of faults of a configuration which keys of a file they come from, if there is one.
func keyFaults(file, path string, section any, err error) error {
	if file == "" {
		return err
	}
	var says []string
	for fault := range heed.ConfigErrors(err) {
		key := cmp.Or(otherKeys[fault.Field], keyOf(reflect.TypeOf(section), fault.Field))
		if key == "" {
			return configFault(file, err)
		}
		says = append(says, fmt.Sprintf("%s.%s is %v: %s", path, key, fault.Value, fault.Reason))
	}
	if says == nil {
		return configFault(file, err)
	}
	return fmt.Errorf("%s: %s", file, strings.Join(says, "; "))
}

// otherKeys has the keys of fields that are named otherwise in their section.
var otherKeys = map[string]string{
	"Bounds": "confidence_floor to confidence_ceiling", "System.Range": "system.floor to system.ceiling",
	"Prior":             "sampling.initial_alpha and initial_beta",
	"Exploration.Bonus": "sampling.exploration_bonus", "Exploration.MinSamples": "sampling.min_samples_for_confidence",
	"Pooling.Sessions": "hierarchy.specialization_threshold", "Pooling.MinConfidence": "hierarchy.specialization_confidence",
	"Weights.Attribution": "outcome.attribution_weight", "Weights.Direct": "outcome.direct_weight",
	"MinConfidence": "outcome.min_outcome_confidence", "Cache.TTL": "cache.ttl_seconds",
}

// keyOf returns the key of a field, which is named by its path, or nothing.
func keyOf(section reflect.Type, path string) string {
	name, rest, deeper := strings.Cut(path, ".")
	field, ok := section.FieldByName(name)
	key, of := field.Tag.Get("toml"), field.Type
	if !ok || !deeper {
		return key
	}
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return ""
	}
	if inner := keyOf(of, rest); inner != "" {
		return key + "." + inner
	}
	return ""
}

// keysOf returns the keys that a section may have.
func keysOf(section reflect.Type) (names []string) {
	for i := range section.NumField() {
		field := section.Field(i)
		name, of := field.Tag.Get("toml"), field.Type
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct {
			names = append(names, name)
			continue
		}
		for _, inner := range keysOf(of) {
			names = append(names, name+"."+inner)
		}
	}
	return names
}

// The numbers of a section. To the packages a 0 is the default, which is not what it says in a file: who wants the default
// leaves the key out.
type (
	number float64
	whole  int
	days   time.Duration
)

var errZero = errors.New("must not be 0: leave it out for the default")

// UnmarshalTOML implements [toml.Unmarshaler].
func (n *number) UnmarshalTOML(value any) error {
	switch x := value.(type) {
	case float64:
		*n = number(x)
	case int64:
		*n = number(x)
	default:
		return errors.New("must be a number")
	}
	if *n == 0 {
		return errZero
	}
	return nil
}

// UnmarshalTOML implements [toml.Unmarshaler].
func (n *whole) UnmarshalTOML(value any) error {
	x, ok := value.(int64)
	switch {
	case !ok || x < math.MinInt32 || x > math.MaxInt32:
		return errors.New("must be a whole number")
	case x == 0:
		return errZero
	}
	*n = whole(x)
	return nil
}

// UnmarshalTOML implements [toml.Unmarshaler].
func (d *days) UnmarshalTOML(value any) error {
	var n number
	if err := n.UnmarshalTOML(value); err != nil {
		return err
	}
	var read time.Duration
	if n > 0 && n <= 36_500 {
		read = time.Duration(float64(n) * float64(24*time.Hour)).Round(time.Microsecond)
	}
	if read == 0 {
		return errors.New("must be a number of days above 0, and at most a hundred years")
	}
	*d = days(read)
	return nil
}
