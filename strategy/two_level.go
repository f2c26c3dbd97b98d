package strategy

import (
	"math"
	"slices"

	"github.com/heedhq/heed/evidence"
)

// leastShape is the least shape of a distribution of rates.
const leastShape = 1e-9

// TwoLevel is the [Pooling] in which items share from the first outcome on. Each arm has a level in
// the segment, and items lie around it. If they lie close, all learn from one. If they lie far
// apart, each goes its own way. How close they lie, the strength, is learned from the items, for
// each arm by itself where arms differ in that. There is no threshold and no copy.
//
// A choice draws each arm's rate around its mean, and a draw below the mean counts as the mean. The
// draw is sharper than a plain one in two ways (both in Chapelle and Li 2011). The segment
// explores, where all items share the cost, and the item mostly uses what is known: in the item's
// part of the variance, the evidence counts eight times. And with many arms the greatest of many
// draws is mostly luck: with k arms, all evidence counts up to 1+log₂(k/2)/2 times.
//
// If an item has all evidence of its segment (90 % or more), because the host names no items, its
// rate is drawn from the prior and its evidence alone.
//
// It is immutable.
type TwoLevel struct{}

// sharpness is how many times an item's evidence counts in its part of the variance.
const sharpness = 8

// strengths are the candidates for how many observations the segment's level is worth to an item.
// They grow by about three, because beliefs hardly differ between neighbours; between them the
// likelihood is interpolated: see weigh.
var strengths = [...]float64{1, 3, 10, 30, 100, 300, 1000, 3000}

// twoLevel holds, for each candidate strength s, the sums of the segment under that strength. An
// item with n observations counts for n(s+1)/(s+n), so at most for s+1. An update exchanges one
// item's share in these sums. The candidates are weighed by their predictions: the probability,
// under each, of every outcome of an item that was seen on that arm before.
//
// All sums use the dispersion of the rewards and the scale of the weights when the model was made.
// When these change, the model drifted.
type twoLevel struct {
	segment    Segment
	spread     spread
	dispersion float64
	total      evidence.Sums // of all items and arms
	scale      float64       // of the outcomes' weights
	candidates [len(strengths)]candidate
	own        []weighed // the candidates by what was seen of each arm alone
	// of each arm: what is believed of an item without evidence
	levels []evidence.Belief
}

// A candidate is the segment under one strength.
type candidate struct {
	arms []counts  // what the items count for, by arm
	logs []float64 // of the probability of what was seen of the arm, up to a constant for each arm
}

// Model implements [Pooling]. It goes over the items twice: first for the level of each arm under
// each candidate, then for the likelihood of the items at these levels.
func (TwoLevel) Model(segment Segment, items []Item) Model {
	m := &twoLevel{
		segment: segment,
		levels:  make([]evidence.Belief, len(segment.Priors)),
		own:     make([]weighed, len(segment.Priors)),
		spread:  spreadOf(items, segment.LeastWeight), total: totalOf(items),
	}
	m.dispersion, m.scale = m.spread.dispersion(), scaleOf(m.total, segment.LeastWeight)
	for j := range m.candidates {
		m.candidates[j] = candidate{make([]counts, len(segment.Priors)),
			make([]float64, len(segment.Priors))}
	}
	for _, item := range items {
		for i, arm := range item.Arms {
			m.exchange(i, counts{}, m.countsOf(arm))
		}
	}
	at := m.standpoints()
	for _, item := range items {
		for i, arm := range item.Arms {
			m.judge(i, &at[i], m.countsOf(arm), arm.Kept())
		}
	}
	m.allow()
	for i := range m.own {
		m.weighOwn(i)
	}
	m.refresh()
	return m
}

// Update implements [Model]. The new outcome is first predicted from what was known before, and
// then added to the sums. Its cost depends on the number of arms and candidates, and not on the
// number of items.
func (m *twoLevel) Update(arm int, before, after evidence.Sums) bool {
	m.spread = m.spread.plus(newSpread(after, m.segment.LeastWeight)).minus(newSpread(before,
		m.segment.LeastWeight))
	if m.total.Mass <= 0 { // no outcome was counted on the scale yet
		m.scale = scaleOf(after, m.segment.LeastWeight)
	}
	m.total = sumsWithout(m.total.Plus(after), before)
	old, now := m.countsOf(before), m.countsOf(after)
	m.predicted(arm, old, now, before.Kept())
	m.exchange(arm, old, now)
	m.weighOwn(arm)
	m.refresh()
	return aged(m.spread.dispersion()/m.dispersion) ||
		aged(scaleOf(m.total, m.segment.LeastWeight)/m.scale)
}

// aged reports whether a value has gone too far from the one with which the sums were made.
func aged(ratio float64) bool { return ratio > aging || ratio < 1/aging }

// aging is how far the dispersion and the scale may go from the values of the sums.
const aging = 1.25

// countsOf returns sums as counts on the scale and with the dispersion of this model.
func (m *twoLevel) countsOf(s evidence.Sums) counts {
	return countsOf(s, m.scale, m.dispersion)
}

// Believe implements [Model]. An item without evidence is its segment: its choices are the choices
// of the levels.
func (m *twoLevel) Believe(item Item, beliefs []evidence.Belief) {
	copy(beliefs, m.levels)
	if !item.seen() {
		return
	}
	if m.isAlone(item) {
		m.believeAlone(item, beliefs)
		return
	}
	// The more evidence a reward is, the less it needs sharpening.
	sharper := max(sharpness*m.crowded()/m.dispersion, 1)
	for i, arm := range item.Arms {
		b, own := &beliefs[i], m.countsOf(arm)
		b.Successes, b.Failures = own.successes, own.failures
		if b.Concentration > 0 {
			b.Concentration = m.concentration(b, sharper)
		}
	}
}

// concentration is how sharp the draws of a belief about an item are. The variance of its rate has
// two parts: of the level, as far as the item follows it, and of the item around the level. The
// draws have the variance of both, the second as if the evidence counted sharper times.
func (m *twoLevel) concentration(b *evidence.Belief, sharper float64) float64 {
	level, mean, n := b.Level.Mean(), b.Mean(), b.Successes+b.Failures
	follows := b.Strength / (b.Strength + n)
	variance := follows*follows*level*(1-level)/(b.Concentration+1) +
		mean*(1-mean)/(sharper*(b.Strength+n)+1)
	return max(mean*(1-mean)/variance-1, leastConcentration)
}

// believeAlone sets the beliefs about an item that has all evidence of its segment.
func (m *twoLevel) believeAlone(item Item, beliefs []evidence.Belief) {
	for i, prior := range m.segment.Priors {
		own := m.countsOf(item.Arms[i])
		beliefs[i] = m.sharpened(evidence.Belief{Level: own.posterior(prior), Successes: own.successes,
			Failures: own.failures}, own.total())
	}
}

// sharpened sets the concentration of a belief about a level from n outcomes. Before the first one
// draws are of the level as it is, so that the weights of arms are their shares.
func (m *twoLevel) sharpened(b evidence.Belief, n float64) evidence.Belief {
	if n < 1 {
		return b
	}
	most := max(m.crowded()/m.dispersion, 1)
	b.Concentration = (b.Level.Alpha + b.Level.Beta) * (1 + (most-1)*n/(n+sharpFrom))
	return b
}

const (
	// leastConcentration is the least sum of the shapes of draws.
	leastConcentration = 0.1
	// After sharpFrom outcomes of an arm, the draws of its level are half as sharp as they become, so
	// that a few failures don't end the trials of an arm.
	sharpFrom = 30
)

// crowded is how many times more evidence counts in draws because there are many arms.
func (m *twoLevel) crowded() float64 {
	return 1 + max(math.Log2(float64(len(m.segment.Priors))/2), 0)/2
}

// isAlone reports whether an item has almost all evidence of its segment.
func (m *twoLevel) isAlone(item Item) bool {
	mass := 0.
	for _, arm := range item.Arms {
		mass += arm.Mass
	}
	return mass >= m.total.Mass*allButAll
}

// allButAll is the share of its segment's evidence with which an item counts as all of it. Limits
// on people may leave an item and its segment sums that differ a little.
const allButAll = 0.9

// Independence implements [Model]. It is the weight of the item's own outcomes against the
// segment's level, n/(s+n), of the arm with the most.
func (m *twoLevel) Independence(item Item) float64 {
	most := 0.
	for i, arm := range item.Arms {
		n := m.countsOf(arm).total()
		most = max(most, n/(m.levels[i].Strength+n))
	}
	return most
}

// exchange replaces in all sums what an item counted for by what it counts for now.
func (m *twoLevel) exchange(arm int, old, now counts) {
	for j, s := range strengths {
		c := &m.candidates[j].arms[arm]
		o, n := old.limited(s), now.limited(s)
		c.successes = max(c.successes-o.successes+n.successes, 0)
		c.failures = max(c.failures-o.failures+n.failures, 0)
	}
}

// limited returns what counts come to in a segment of this strength. The factor (s+1)/(s+n) is the
// precision of an item's mean as a sample of the level: one outcome counts as one, and infinitely
// many as s+1, because the item itself deviates from the level.
func (c counts) limited(s float64) counts {
	factor := (s + 1) / (s + c.total())
	return counts{c.successes * factor, c.failures * factor}
}

// level returns the mean of an arm under a candidate.
func (m *twoLevel) level(candidate, arm int) float64 {
	c, prior := &m.candidates[candidate].arms[arm], m.segment.Priors[arm]
	alpha := prior.Alpha + c.successes
	return alpha / (alpha + prior.Beta + c.failures)
}

// predicted weighs the candidates by the probability of new outcomes of an item that was seen on
// the arm before. kept is what the limits on people leave of each: see judge.
func (m *twoLevel) predicted(arm int, old, now counts, kept float64) {
	successes, failures := now.successes-old.successes, now.failures-old.failures
	if old.total() <= 0 || successes+failures <= 0 { // it is the first, or evidence was taken back
		return
	}
	old = counts{old.successes / kept, old.failures / kept}
	n := old.total()
	// One may be below 0, by rounding, or as the weights of the outcomes became less alike.
	successes, failures = max(successes, 0), max(failures, 0)
	for j, s := range strengths {
		p, log := (s*m.level(j, arm)+old.successes)/(s+n), &m.candidates[j].logs[arm]
		if successes > 0 {
			*log += successes * math.Log(max(p, leastShape))
		}
		if failures > 0 { // most outcomes are one of the two
			*log += failures * math.Log(max(1-p, leastShape))
		}
	}
}

// A standpoint is what the likelihood of all items on an arm has in common under a candidate: the
// shapes of the items' rates, and the part of the likelihood that does not depend on the item.
type standpoint struct{ alpha, beta, log float64 }

// standpoints returns the standpoint of each candidate, by arm. They are computed once for all
// items, because gamma functions are most of the cost of making a model.
func (m *twoLevel) standpoints() [][len(strengths)]standpoint {
	all := make([][len(strengths)]standpoint, len(m.segment.Priors))
	for i := range all {
		for j, s := range strengths {
			level := m.level(j, i)
			a, b := max(s*level, leastShape), max(s*(1-level), leastShape)
			all[i][j] = standpoint{a, b, lgamma(s) - lgamma(a) - lgamma(b)}
		}
	}
	return all
}

// judge weighs the candidates by the probability of all outcomes of an item on an arm, in any
// order: the Beta-binomial likelihood at the segment's level. predicted gives the same result if
// the level is known beforehand.
//
// Where a limit on people leaves a part kept of each outcome, the item's mean is as precise as the
// mean of 1/kept times as many whole outcomes. They count by that part. If they were taken for
// fewer, more of the difference between items would seem to be chance, and all items alike. So what
// is limited to a mass still moves the logarithms by no more than so many whole outcomes can.
func (m *twoLevel) judge(arm int, at *[len(strengths)]standpoint, c counts, kept float64) {
	c = counts{c.successes / kept, c.failures / kept}
	n := c.total()
	if n <= 1 { // a single outcome is as probable under every strength
		return
	}
	for j, s := range strengths {
		p := &at[j]
		m.candidates[j].logs[arm] += kept * (lgamma(p.alpha+c.successes) + lgamma(p.beta+c.failures) -
			lgamma(s+n) + p.log)
	}
}

// allow allows for what is not known of the levels. judge took each for its mean, where the
// likelihood was to be averaged over all levels: by Laplace's method that is the likelihood there,
// times the level's standard deviation.
func (m *twoLevel) allow() {
	for j := range m.candidates {
		for i, prior := range m.segment.Priors {
			c := &m.candidates[j].arms[i]
			a, b := prior.Alpha+c.successes, prior.Beta+c.failures
			m.candidates[j].logs[i] += math.Log(a/(a+b)*b/(a+b)/(a+b+1)) / 2
		}
	}
}

// lgamma is the logarithm of the gamma function, for x above 0, where its sign is positive.
func lgamma(x float64) float64 {
	y, _ := math.Lgamma(x)
	return y
}

// apartOdds are the odds, beforehand, that each arm has its own strength.
const apartOdds = 1. / 19

// weighOwn weighs the candidates by what was seen of an arm alone. The greatest logarithm becomes
// 0, so that logarithms stay small however many outcomes there are. Only their differences count.
func (m *twoLevel) weighOwn(arm int) {
	var logs [len(strengths)]float64
	most := math.Inf(-1)
	for j := range m.candidates {
		most = max(most, m.candidates[j].logs[arm])
	}
	for j := range m.candidates {
		m.candidates[j].logs[arm] -= most
		logs[j] = m.candidates[j].logs[arm]
	}
	m.own[arm] = weigh(&logs)
}

// refresh computes how certain each arm's strength is, and its level. Either all arms have one
// strength, or each has its own: items may differ in how well a small model does, while a large one
// does well on all. One strength is the likelier of the two beforehand: see apartOdds. The outcomes
// determine how probable each is now, and so how much it counts.
func (m *twoLevel) refresh() {
	var logs [len(strengths)]float64
	for j := range m.candidates {
		for _, log := range m.candidates[j].logs {
			logs[j] += log
		}
	}
	shared, apart := weigh(&logs), 0.
	for i := range m.own {
		apart += m.own[i].log
	}
	share := 1 / (1 + math.Exp(apart-shared.log)*apartOdds)
	for i, prior := range m.segment.Priors {
		level, own := prior, &m.own[i]
		for j := range m.candidates {
			c, w := &m.candidates[j].arms[i], share*shared.weights[j]+(1-share)*own.weights[j]
			level.Alpha += w * c.successes
			level.Beta += w * c.failures
		}
		mean := share*shared.mean + (1-share)*own.mean
		squares := share*shared.squares + (1-share)*own.squares
		m.levels[i] = m.sharpened(evidence.Belief{Level: level, Strength: math.Exp(mean),
			Doubt: math.Sqrt(max(squares-mean*mean, 0) + within)},
			level.Alpha+level.Beta-prior.Alpha-prior.Beta)
	}
}

// finer is how many strengths are weighed from one candidate to the next.
const finer = 4

// between has, for each strength that is weighed after a candidate, the coefficients by which the
// logarithms of four candidates give its own: Lagrange's cubic. The first row is for the first two
// candidates, the second for those in the middle, the third for the last.
var between = func() (rows [3][finer][4]float64) {
	for row := range rows {
		for k := range rows[row] {
			x := float64(row) + float64(k)/finer
			for i := range 4 {
				rows[row][k][i] = 1
				for o := range 4 {
					if o != i {
						rows[row][k][i] *= (x - float64(o)) / float64(i-o)
					}
				}
			}
		}
	}
	return rows
}()

// logStrengths are the logarithms of the strengths that are weighed.
var logStrengths = func() (all [(len(strengths)-1)*finer + 1]float64) {
	for n := range all {
		j, part := n/finer, float64(n%finer)/finer
		all[n] = math.Log(strengths[j])
		if part > 0 {
			all[n] += part * (math.Log(strengths[j+1]) - all[n])
		}
	}
	return all
}()

// negligibleWeight is the logarithm of a weight, relative to the greatest, that changes no sum.
const negligibleWeight = -40

// weighed are candidates by their probabilities.
type weighed struct {
	weights [len(strengths)]float64
	mean    float64 // of the logarithm of the strength
	squares float64 // the mean of its square
	log     float64 // of the probability of what was seen, over all strengths
}

// weigh weighs the candidates by the logarithms of their probabilities. They lie far apart, so the
// logarithms are interpolated. A strength between two candidates has its weight spread over both,
// in proportion to how near they are, because sums are kept for candidates only.
func weigh(at *[len(strengths)]float64) (all weighed) {
	const last = len(strengths) - 1
	var logs [len(logStrengths)]float64
	for j := range last {
		first := min(max(j-1, 0), last-3)
		four := at[first : first+4]
		for k := range finer {
			c := &between[j-first][k]
			logs[j*finer+k] = c[0]*four[0] + c[1]*four[1] + c[2]*four[2] + c[3]*four[3]
		}
	}
	logs[last*finer] = at[last]
	most, total := slices.Max(logs[:]), 0.
	for n, log := range logs {
		if log -= most; log < negligibleWeight {
			continue
		}
		w, strength := math.Exp(log), logStrengths[n]
		j, part := n/finer, float64(n%finer)/finer
		all.weights[j] += w * (1 - part)
		if part > 0 {
			all.weights[j+1] += w * part
		}
		total += w
		all.mean += w * strength
		all.squares += w * strength * strength
	}
	for j := range all.weights {
		all.weights[j] /= total
	}
	all.mean /= total
	all.squares /= total
	all.log = most + math.Log(total/float64(len(logs)))
	return all
}

// within is the variance of the logarithm of a strength around the one that is nearest of those
// that are weighed.
const within = 1.15 * 1.15 / finer / finer / 12
