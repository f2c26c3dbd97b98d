package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// readSection reads a section of a TOML file into a struct, and reports whether a file was given that has it. Keys of the
// section that mean nothing are told; other sections are for others.
func readSection(s *session, file, path string, section any) (found bool, err error) {
	if file == "" {
		return false, nil
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return false, fmt.Errorf("there is no file %s: check --config", file)
	}
	if err != nil {
		return false, err
	}
	found, unknown, err := decodeSection(string(text), strings.Split(path, "."), section)
	if err != nil {
		return false, configFault(file, err)
	}
	if !found {
		warn("%s has no section [%s]: the defaults hold", file, path)
	}
	for _, name := range unknown {
		hint := ""
		if near := nearest(name, keysOf(reflect.TypeOf(section).Elem())); len(near) > 0 {
			hint = ": did you mean " + near[0] + "?"
		}
		warn("%s: unknown key %s in [%s]%s", file, name, path, hint)
	}
	return found, nil
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
