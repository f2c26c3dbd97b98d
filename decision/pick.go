package decision

// pick returns the candidate that answers, or nil. Without tiers only the first candidate can answer.
func (d *Decider) pick(r *Request, res *Result) *Candidate {
	switch res.Tier {
	case Immediately:
		for i := range r.Candidates {
			if r.Candidates[i].Confidence >= res.Threshold {
				return &r.Candidates[i]
			}
		}
		return nil
	case Soon:
		return d.draw(r, res.Threshold)
	case NotUrgent:
		return d.singular(r, res.Threshold)
	default:
		if len(r.Candidates) > 0 && r.Candidates[0].Confidence >= res.Threshold {
			return &r.Candidates[0]
		}
		return nil
	}
}

// draw draws one of the candidates that reach the threshold.
func (d *Decider) draw(r *Request, threshold float64) *Candidate {
	weight := func(c *Candidate) float64 { return c.Confidence }
	for i := range r.Candidates {
		if r.Candidates[i].Similarity > 0 {
			weight = func(c *Candidate) float64 { return max(c.Similarity, 0) }
			break
		}
	}
	var total float64
	for i := range r.Candidates {
		if c := &r.Candidates[i]; c.Confidence >= threshold {
			total += weight(c)
		}
	}
	rng := d.rng(r, forChoice)
	left := rng.Float64() * total
	var drawn *Candidate
	for i := range r.Candidates {
		c := &r.Candidates[i]
		if c.Confidence < threshold || weight(c) == 0 {
			continue
		}
		drawn = c
		if left -= weight(c); left < 0 {
			break
		}
	}
	return drawn
}

// singular returns the candidate that has both similarity and confidence, if exactly one has.
func (d *Decider) singular(r *Request, threshold float64) *Candidate {
	u := &d.cfg.Urgency
	var only *Candidate
	for i := range r.Candidates {
		c := &r.Candidates[i]
		if c.Similarity < u.Similarity || c.Confidence < max(u.Confidence, threshold) {
			continue
		}
		if only != nil {
			return nil
		}
		only = c
	}
	return only
}
