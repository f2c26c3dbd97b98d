package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"reflect"
	"time"
)

// Templates render the pages of paths with texts in the place of all texts of their data, one after
// the other from a first one on.
func Templates(h *Handler, paths []string) map[string]func(texts []string, begin int) string {
	pages := make(map[string]page)
	for _, p := range allPages {
		pages[p.path] = p
	}
	all := make(map[string]func([]string, int) string)
	for _, path := range paths {
		r := httptest.NewRequestWithContext(context.WithValue(context.Background(), personKey{}, "kim"),
			http.MethodGet, path, nil)
		p := pages[r.URL.Path]
		f, err := p.frame(r, h.view())
		if err != nil {
			continue
		}
		data := f.Data
		all[path] = func(texts []string, begin int) string {
			next := func() string { begin++; return texts[begin%len(texts)] }
			tainted := reflect.New(reflect.TypeOf(data)).Elem()
			tainted.Set(reflect.ValueOf(data))
			taint(tainted, next)
			v := frame{Title: f.Title + next(), Done: next(), Problem: next(),
				Typed: map[string][]string{"reason": {next()}, "text": {next()}}, Data: tainted.Interface()}
			w := httptest.NewRecorder()
			h.render(w, r.WithContext(context.WithValue(r.Context(), personKey{}, next())), http.StatusOK,
				p.name(), v)
			return w.Body.String()
		}
	}
	return all
}

// taint puts texts into the place of every text of a value.
func taint(v reflect.Value, next func() string) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() && v.Type() != reflect.TypeFor[address]() { // pages make addresses by themselves
			v.SetString(next())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() || f.Anonymous {
				taint(v.Field(i), next)
			}
		}
	case reflect.Slice:
		if v.CanSet() {
			all := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			reflect.Copy(all, v)
			for i := range all.Len() {
				taint(all.Index(i), next)
			}
			v.Set(all)
		}
	case reflect.Map:
		if v.CanSet() && !v.IsNil() {
			all := reflect.MakeMap(v.Type())
			for _, key := range v.MapKeys() {
				one := reflect.New(v.Type().Elem()).Elem()
				one.Set(v.MapIndex(key))
				taint(one, next)
				all.SetMapIndex(key, one)
			}
			v.Set(all)
		}
	case reflect.Pointer: // what is missing is there, so that all of a template is run
		if v.CanSet() && (!v.IsNil() || v.Type().Elem().Kind() == reflect.Struct) {
			one := reflect.New(v.Type().Elem())
			if !v.IsNil() {
				one.Elem().Set(v.Elem())
			}
			taint(one.Elem(), next)
			v.Set(one)
		}
	default: // no text is in it
	}
}

// Bound sets the bounds of a request that a host cannot set.
func (c *Config) Bound(timeout time.Duration, body int64) { c.timeout, c.maxBody = timeout, body }
