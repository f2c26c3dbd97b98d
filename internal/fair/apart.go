package fair

import (
	"hash/fnv"
	"hash/maphash"
	"slices"
	"strconv"

	"github.com/heedhq/heed/evidence"
)

// MostParts is how many parts a cell may have before new sources share places: see [Apart].
const MostParts = 4096

// places is how many places there are.
const places = 1024

// MostChannels is how many channels of one source a cell keeps apart, and OtherChannels the name
// that further channels share: see [Apart].
const (
	MostChannels  = 16
	OtherChannels = "heed:others"
)

// silence is the channel of silence about arms. [evidence.Trust] may name further ones.
const silence = "silence"

// Apart sets the source and the channel under which a cell with these parts keeps an observation.
// The source is its name, or, if the cell has [MostParts] and none of this source, one of 1,024
// places, by a hash of the name. The channel becomes [OtherChannels] if it is new, and the source
// has [MostChannels] or the cell [MostParts]. So a cell is read in a bounded time, for any number
// of people, and one person does not fill it. Channels of silence stay, because they have a limit.
//
// A place is one person. So f(k) holds for k people who share places with others, who count for as
// little as they do. Such an observation does not name its source: it can be taken back by its ID,
// but not expunged.
func Apart(t evidence.Trust, parts []evidence.Part, o *evidence.Observation) {
	known := func() bool { return len(channelsOf(parts, o.Source)) > 0 }
	o.Source = apart(t, len(parts), o.Source, known)
	kept := append(channelsOf(parts, o.Source), t.Silence...)
	if Full(parts, o.Source) && known() && o.Channel != silence && !slices.Contains(kept, o.Channel) {
		o.Channel = OtherChannels
	}
}

// Full reports whether a cell with these parts may have to change the source or the channel of an
// observation from this source: see [Apart].
func Full(parts []evidence.Part, source string) bool {
	return len(parts) >= MostParts || len(channelsOf(parts, source)) >= MostChannels
}

// channelsOf returns the channels of a source's parts.
func channelsOf(parts []evidence.Part, source string) (channels []string) {
	for i := range parts {
		if parts[i].Source == source {
			channels = append(channels, parts[i].Channel)
		}
	}
	return channels
}

func apart(t evidence.Trust, parts int, source string, known func() bool) string {
	if parts < MostParts || source == "" || slices.Contains(t.Instruments, source) || known() {
		return source
	}
	return Place(source)
}

// Sources are who has parts of a cell, by hashes of their names, which take less memory. They must
// not be used concurrently.
type Sources struct {
	seed  maphash.Seed
	names map[uint64]bool
	parts int
}

// SourcesOf returns who has these parts of a cell.
func SourcesOf(parts []evidence.Part) *Sources {
	s := &Sources{maphash.MakeSeed(), make(map[uint64]bool, len(parts)), len(parts)}
	for i := range parts {
		s.names[maphash.String(s.seed, parts[i].Source)] = true
	}
	return s
}

// Apart returns the source that [Apart] sets for a cell with these sources. It does not limit
// channels.
func (s *Sources) Apart(t evidence.Trust, source string) string {
	return apart(t, s.parts, source, func() bool { return s.names[maphash.String(s.seed, source)] })
}

// Add adds a source, with a part if it had none, and reports whether it had none.
func (s *Sources) Add(source string) (isNew bool) {
	name := maphash.String(s.seed, source)
	if isNew = !s.names[name]; isNew {
		s.names[name] = true
		s.parts++
	}
	return isNew
}

// Place returns the place of a source that is not kept apart: see [Apart].
func Place(source string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(source)) // it returns no error
	return "heed:others/" + strconv.Itoa(int(h.Sum32()%places))
}
