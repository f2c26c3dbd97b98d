package text

import "strings"

// Lists returns the lines of each list in a file, by its name. A name is in brackets on a line by
// itself, before the lines of its list. Lines that begin with # are comments.
func Lists(file string) map[string][]string {
	all, name := map[string][]string{}, ""
	for line := range strings.Lines(file) {
		switch line = strings.TrimSpace(line); {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			name = strings.Trim(line, "[]")
		default:
			all[name] = append(all[name], line)
		}
	}
	return all
}
