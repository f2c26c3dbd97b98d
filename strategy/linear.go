package strategy

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/chance"
)

// mostNumbers is how many numbers of a vector the linear level uses. A longer vector is reduced to
// as many, and one of more than longestVector numbers is refused.
const (
	mostNumbers   = 32
	longestVector = 1 << 16
)

// direction returns the direction of a vector, or nil if it has none. A vector of more than
// mostNumbers numbers is multiplied by a matrix of random signs, which leaves the angles between
// vectors about as they are (Achlioptas 2003). The signs follow from their places, so that all
// processes agree.
func direction(vector []float32) []float32 {
	x := make([]float64, min(len(vector), mostNumbers)) // sums of any float32 are finite
	for j, v := range vector {
		if len(vector) <= mostNumbers {
			x[j] = float64(v)
			continue
		}
		signs := chance.Rand{State: uint64(j)} //nolint:gosec // not negative
		for i, bits := 0, signs.Uint64(); i < mostNumbers; i, bits = i+1, bits>>1 {
			x[i] += float64(v) * (1 - 2*float64(bits&1))
		}
	}
	squares := 0.
	for _, v := range x {
		squares += v * v
	}
	if squares == 0 {
		return nil
	}
	unit, length := make([]float32, len(x)), math.Sqrt(squares)
	for i, v := range x {
		unit[i] = float32(v / length)
	}
	return unit
}

// packed is a vector as a record has it. Four bytes a number keep a record with 32 numbers at 128
// bytes, before it is encoded.
func packed(x []float32) []byte {
	text, _ := binary.Append(nil, binary.LittleEndian, x) // no error is possible
	return text
}

// unpacked is the inverse of packed. It returns nil if a number is not finite, for example in a
// dump that another program wrote, because such a number would spread to all sums.
func unpacked(text []byte) []float32 {
	x := make([]float32, len(text)/4)
	_, _ = binary.Decode(text, binary.LittleEndian, x) // the text is long enough
	for _, v := range x {
		if v := float64(v); math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
	}
	return x
}

// A sample is one outcome of a choice that has a vector, as the linear level learns from it.
type sample struct {
	id     string // of the evidence
	source string
	// at is when the outcome came about.
	at  time.Time
	arm int
	x   []float32
	// reward is in [0, 1].
	reward         float64
	above          float64 // what the item was above its segment's level
	weight         float64 // its confidence and share
	tables, linear float64 // what either had predicted
	common         float64 // how much more the tables would have, for all arms alike
	counts         float64 // the weight within the limits on people, faded
}

// A linear is the linear level of a segment. It learns how the reward of each arm depends on the
// vector of a request: a Bayesian regression with a normal prior for each arm. And it compares how
// well it predicted with how well the tables did, which are the pooling's beliefs. Both follow from
// the latest outcomes of choices that were recorded with a vector, and from nothing else: an
// outcome that is taken back leaves no trace.
//
// It is not safe for concurrent use: the lock of the segment guards it. All sums are kept so that a
// sample can be added and taken out again in O(numbers²), and only the solving costs O(numbers³).
type linear struct {
	// numbers is the length of the vectors that it learns from. Samples of another length, for
	// example from before the host changed its embedding, are left out.
	numbers int
	cold    []float64 // the mean that is expected of each arm before any outcome
	fits    []fit
	common  fit       // of what the reward is above the tables, for all arms alike
	samples []*sample // the oldest first
	known   map[string]*sample
	sources map[string]int // how many samples each source has
	// now is when it was loaded. Weights fade up to that moment, and are computed again with the next
	// load, so that all samples fade alike in between.
	now time.Time
	// half is Config.HalfLife. 0: weights do not fade.
	half time.Duration
	// kept returns the part of a source's evidence on an arm that counts.
	kept func(arm int, source string) float64
	// mass is the sum of what all samples count.
	mass    float64
	squares float64 // of their weights
	// leads are how much better than the tables the level predicted for each source: the difference
	// of the logarithmic losses. odds follow from them. The first is against the tables as they are,
	// the second as if they knew what is common. The smaller of both counts, so the level must beat
	// either.
	leads       [2]map[string]float64
	instruments []string // sources without a limit
	odds        float64  // that the level is right, and not the tables
}

// A fit is the regression of an arm, as its normal equations: the coefficients solve (Σ x xᵀ + P) c
// = Σ x y, where P is the prior's precision. Its sums have the constant 1 before the numbers of the
// vector, so that the first coefficient is the arm's level.
type fit struct {
	products []float64 // Σ x xᵀ, the lower triangle by rows
	sums     []float64 // Σ x y for what the reward is above the cold start and the item
	rewards  float64   // Σ y²

	root    []float32 // of the precision: the lower triangle of Cholesky's decomposition
	bold    []float64 // the coefficients under a wide prior, for choosing
	careful []float64 // under a narrow one, for predicting
	spread  float64   // the standard deviation of draws, of a vector of unit precision
}

// The prior of the linear level. A vector moves the reward of an arm by a standard deviation of
// usual, as predictions expect. Choices expect twice that and draw with a third of the standard
// deviation, because requests differ and so explore by themselves. The level of an arm lies around
// its cold start by levelSpread. A unit of evidence has the variance evenNoise at first, which
// counts as noiseFrom outcomes. One choice of ten is the level's before any outcome.
const (
	usual       = 0.25
	boldness    = 2
	drawn       = 0.3
	levelSpread = 0.25
	evenNoise   = 0.25
	noiseFrom   = 4
	linearOdds  = 1. / 9
)

// mostSamples bounds the outcomes that the linear level of a segment remembers.
const mostSamples = 4000

func newFit(n int) fit {
	return fit{
		products: make([]float64, n*(n+1)/2), sums: make([]float64, n),
		root: make([]float32, n*(n+1)/2), bold: make([]float64, n), careful: make([]float64, n),
	}
}

// newLinear returns a level without samples, which expects the cold start of each arm whatever the
// vector. It is solved at once, so that predict finds roots that are not 0.
func newLinear(numbers int, priors []evidence.Beta, now time.Time, half time.Duration) *linear {
	m := &linear{
		numbers: numbers, fits: make([]fit, len(priors)), known: make(map[string]*sample),
		sources: make(map[string]int), now: now, half: half,
		odds: linearOdds,
		kept: func(int, string) float64 { return 1 },
	}
	n := 1 + numbers
	for i := range priors {
		m.cold = append(m.cold, priors[i].Mean())
		m.fits[i] = newFit(n)
	}
	m.common, m.leads = newFit(n), [2]map[string]float64{{}, {}}
	for i := range m.fits {
		m.solve(i)
	}
	return m
}

// replace removes outcomes by their ids and adds one, which may be nil. It has no effect on nil.
func (m *linear) replace(ids []string, by *sample) {
	if m == nil {
		return
	}
	for _, id := range ids {
		m.remove(id)
	}
	if by != nil {
		m.add(by)
	}
}

// add adds an outcome, once.
func (m *linear) add(s *sample) {
	added, removed := m.remember(s)
	if !added {
		return
	}
	m.count(s)
	if removed != nil {
		m.uncount(removed)
		m.solve(removed.arm)
	}
	m.solve(s.arm)
	m.compare()
}

// remember adds a sample without counting it, unless it is known or of another length. If there are
// too many, the source with most loses its oldest, so that one source can't displace the outcomes
// of others.
func (m *linear) remember(s *sample) (added bool, removed *sample) {
	if m.known[s.id] != nil || len(s.x) != m.numbers {
		return false, nil
	}
	m.known[s.id], m.samples = s, append(m.samples, s)
	m.sources[s.source]++
	if len(m.samples) > mostSamples {
		most := s.source
		for source, n := range m.sources {
			if n > m.sources[most] || n == m.sources[most] && source < most {
				most = source
			}
		}
		oldest := slices.IndexFunc(m.samples, func(s *sample) bool { return s.source == most })
		removed = m.samples[oldest]
		m.forget(removed)
	}
	return true, removed
}

// forget drops a sample that was remembered, and leaves the sums as they are.
func (m *linear) forget(s *sample) {
	delete(m.known, s.id)
	m.samples = slices.DeleteFunc(m.samples, func(o *sample) bool { return o == s })
	if m.sources[s.source]--; m.sources[s.source] == 0 {
		delete(m.sources, s.source)
	}
}

// count adds what a sample counts for to the sums. One from after the load counts in full and not
// for more, so that a clock that jumps leaves the sums finite.
func (m *linear) count(s *sample) {
	s.counts = s.weight * m.kept(s.arm, s.source)
	if m.half > 0 {
		s.counts *= math.Exp2(-max(m.now.Sub(s.at).Hours(), 0) / m.half.Hours())
	}
	m.put(s, 1)
}

// remove takes an outcome out of all sums.
func (m *linear) remove(id string) {
	if s := m.known[id]; s != nil {
		m.forget(s)
		m.uncount(s)
		m.solve(s.arm)
		m.compare()
	}
}

// uncount takes a sample that was forgotten out of the sums.
func (m *linear) uncount(s *sample) {
	m.put(s, -1)
	if m.sources[s.source] == 0 {
		delete(m.leads[0], s.source)
		delete(m.leads[1], s.source)
	}
}

// put adds a sample to the sums, or takes it out. Taking out subtracts exactly what adding added,
// because s.counts stays as it is. What rounding leaves is removed with the next load, which makes
// all sums again.
func (m *linear) put(s *sample, sign float64) {
	w := sign * s.counts
	m.fits[s.arm].put(s, w, s.reward-s.above-m.cold[s.arm])
	m.common.put(s, w, s.reward-s.tables)
	m.mass += w
	m.squares += w * s.counts
	// What either predicted was recorded with the choice, before the outcome was known. So the
	// comparison is honest: no prediction is made from the data that it is scored on.
	own := loss(s.linear, s.reward)
	m.leads[0][s.source] += w * (loss(s.tables, s.reward) - own)
	m.leads[1][s.source] += w * (loss(s.tables+s.common, s.reward) - own)
}

// put adds an outcome with a weight to the sums, where y is what the vector explains.
func (f *fit) put(s *sample, w, y float64) {
	at := 0
	for i := range f.sums {
		xi := w * s.number(i)
		f.sums[i] += xi * y
		for j := range i + 1 {
			f.products[at] += xi * s.number(j)
			at++
		}
	}
	f.rewards += w * y * y
}

// number returns a number of the vector, after the constant.
func (s *sample) number(i int) float64 {
	if i == 0 {
		return 1
	}
	return float64(s.x[i-1])
}

// loss is the logarithmic loss of a prediction. It is at least −log 0.98 for a right prediction and
// at most −log 0.02 for a wrong one, so a single outcome can't decide between the levels.
func loss(predicted, reward float64) float64 {
	p := min(max(predicted, 0.02), 0.98)
	return -reward*math.Log(p) - (1-reward)*math.Log(1-p)
}

// weigh makes the sums of samples that were taken. kept returns the part of a source's evidence on
// an arm that counts. A load calls it, once the limits on people are known for all evidence of the
// segment.
func (m *linear) weigh(kept func(arm int, source string) float64) {
	m.kept = kept
	for _, s := range m.samples {
		m.count(s)
	}
	for range 2 { // the noise follows from what was solved
		for i := range m.fits {
			m.solve(i)
		}
	}
	m.compare()
}

// scale is the weight of a mean unit of evidence: see scaleOf.
func (m *linear) scale() float64 {
	return scaleOf(evidence.Sums{Mass: m.mass, Squares: m.squares}, 0)
}

// compare works out the odds of the level against the tables, by their predictions (Bayesian model
// averaging), where each outcome counts as one. A person could report what makes the level look
// right or wrong, so what each of N people adds to its lead is limited like evidence: to the x that
// solves x = 2/N · Σ min(lead, x), or to the third of the leads, or to leastLead, whichever is
// most. What a person takes from the lead is limited alike. One or two people are believed as they
// are.
//
// A lead of 500 nats is beyond doubt, and its exponential is still finite.
func (m *linear) compare() {
	least := min(m.total(m.leads[0]), m.total(m.leads[1]))
	m.odds = linearOdds * math.Exp(min(max(least, -500), 500))
}

// total adds up the leads of all sources within the limits on people. Leads are divided by the
// scale of the weights, so that each outcome counts as one. Instruments are trusted and count in
// full.
func (m *linear) total(leads map[string]float64) (all float64) {
	scale, most, least := m.scale(), math.Inf(1), math.Inf(1)
	var people, losses []float64
	for source, lead := range leads {
		if lead /= scale; slices.Contains(m.instruments, source) {
			all += lead
		} else {
			people, losses = append(people, lead), append(losses, -lead)
		}
	}
	slices.Sort(people) // also so that the sum does not depend on the order of the map
	slices.Sort(losses)
	if len(people) > 2 {
		most, least = mostLead(people), mostLead(losses)
	}
	for _, lead := range people {
		all += max(min(lead, most), -least)
	}
	return all
}

// leastLead is what each person may add to the lead, or take, in any case, in nats.
const leastLead = 0.25

// mostLead returns what each of many people may add to the lead, of their leads in order, or take
// from it, of their losses. From above, Newton's method comes down to x, because the difference of
// both sides is concave.
func mostLead(leads []float64) float64 {
	n := float64(len(leads))
	least := max(leads[len(leads)-3], leastLead)
	// The first step, from infinity, limits no lead. Each further step limits those above x.
	for x := math.Inf(1); ; {
		over, rest := 0., 0.
		for _, lead := range leads {
			if lead > x {
				over++
			} else {
				rest += max(lead, 0)
			}
		}
		next := 2 / n * rest / (1 - 2/n*over)
		if !(next < x) || next <= least {
			return max(min(x, next), least)
		}
		x = next
	}
}

// weight is the probability with which the level chooses, and not the tables.
func (m *linear) weight() float64 { return m.odds / (1 + m.odds) }

// noise is the variance of an outcome around its prediction. It is the mean of what the
// coefficients leave unexplained, together with noiseFrom outcomes of the variance evenNoise, so
// that a few outcomes that fit by chance do not make the level sure of itself.
func (m *linear) noise() float64 {
	all, n := evenNoise*noiseFrom*m.scale(), noiseFrom*m.scale()
	for i := range m.fits {
		f := &m.fits[i]
		explained := 0.
		for j, x := range f.bold {
			explained += x * f.sums[j]
		}
		all += min(max(f.rewards-explained, 0), f.rewards)
		n += f.products[0]
	}
	return max(all/n, 1e-4)
}

// variance is the mean squared distance of vectors from their mean. With few it is 1. Directions
// have length 1, so it is at most 1. The prior is scaled by it, because vectors that lie close
// together, as embeddings of one topic do, need larger coefficients for the same effect.
func (m *linear) variance() float64 {
	mass, all := 0., 0.
	for i := range m.fits {
		mass += m.fits[i].products[0]
	}
	if mass < 10*m.scale() {
		return 1
	}
	// Row j of the lower triangle begins with the sum over the constant and number j, and ends with
	// the sum of squares of number j, so both moments of all numbers are in the products already.
	at := 1
	for j := 1; j <= m.numbers; j++ {
		sum, squares := 0., 0.
		for i := range m.fits {
			sum += m.fits[i].products[at]
			squares += m.fits[i].products[at+j]
		}
		all += squares/mass - sum/mass*sum/mass
		at += j + 1
	}
	return max(all, 1e-3)
}

// solve works out the coefficients of an arm, and what all arms have in common. If a request is
// hard for all arms, the vector explains rewards, but chooses no arm. So the tables are compared
// with the level as if they knew what is common.
//
// Three systems are solved, each by Cholesky's decomposition: what is common, the arm under the
// narrow prior for predictions, and the arm under the wide prior for choices. The last root is
// kept, because predict needs it for the standard deviation of a draw.
func (m *linear) solve(arm int) {
	f, noise, scale := &m.fits[arm], m.noise(), m.scale()
	level := noise / (levelSpread * levelSpread) * scale
	narrow := noise / (usual * usual) * m.variance() * scale
	root := make([]float64, len(f.products))
	m.common.decompose(root, level, narrow)
	substitute(root, m.common.sums, m.common.careful)
	f.decompose(root, level, narrow)
	substitute(root, f.sums, f.careful)
	f.decompose(root, level, narrow/(boldness*boldness))
	substitute(root, f.sums, f.bold)
	for i, x := range root {
		f.root[i] = float32(x)
	}
	f.spread = drawn * math.Sqrt(noise*scale)
}

// decompose sets the root of the products with a prior's precisions on the diagonal. level is the
// precision of the constant, and slope the precision of each number. The matrix is positive
// definite with them; rounding may still bring a diagonal to 0, so each is at least 1e-9.
func (f *fit) decompose(root []float64, level, slope float64) {
	row := 0
	for i := range f.sums {
		column := 0
		for j := range i + 1 {
			x := f.products[row+j]
			if i == j {
				x += slope
				if i == 0 {
					x += level - slope
				}
			}
			for k := range j {
				x -= root[row+k] * root[column+k]
			}
			if i == j {
				root[row+j] = math.Sqrt(max(x, 1e-9))
			} else {
				root[row+j] = x / root[column+j]
			}
			column += j + 1
		}
		row += i + 1
	}
}

// substitute solves root rootᵀ x = sums. The first loop solves root y = sums from the top, and the
// second rootᵀ x = y from the bottom, in place.
func substitute(root, sums, x []float64) {
	row := 0
	for i := range sums {
		x[i] = sums[i]
		for k := range i {
			x[i] -= root[row+k] * x[k]
		}
		x[i] /= root[row+i]
		row += i + 1
	}
	for i := len(sums) - 1; i >= 0; i-- {
		row -= i + 1
		x[i] /= root[row+i]
		for k := range i {
			x[k] -= root[row+k] * x[i]
		}
	}
}

// predict returns what is expected of an arm for a vector: for choosing, with the standard
// deviation of a draw, and for predicting. Both lie above the cold start by as much as the item.
// The variance of the prediction is xᵀ A⁻¹ x for the precision A = root rootᵀ. It is |y|² for the y
// that solves root y = x, so one forward substitution gives it. float32 is precise enough for a
// deviation, and halves what a choice reads of memory.
func (m *linear) predict(arm int, x []float32, above float64) (bold, deviation, careful float64) {
	f := &m.fits[arm]
	bold, careful = m.cold[arm]+above+f.bold[0], m.cold[arm]+above+f.careful[0]
	var solved [1 + mostNumbers]float32
	solved[0] = 1 / f.root[0]
	squares, row := solved[0]*solved[0], 1
	for i, v := range x {
		bold += f.bold[i+1] * float64(v)
		careful += f.careful[i+1] * float64(v)
		for k, y := range solved[:i+1] {
			v -= f.root[row+k] * y
		}
		solved[i+1] = v / f.root[row+i+1]
		squares += solved[i+1] * solved[i+1]
		row += i + 2
	}
	return bold, max(f.spread*math.Sqrt(float64(squares)), 1e-6), careful
}

// alike returns how much more than the tables all arms alike are expected to earn.
func (m *linear) alike(x []float32) float64 {
	more := m.common.careful[0]
	for i, v := range x {
		more += m.common.careful[i+1] * float64(v)
	}
	return more
}

// earlier orders samples.
func earlier(a, b *sample) int {
	return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.id, b.id))
}
