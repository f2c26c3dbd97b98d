package fair

// People returns their number, when the crowd settled.
func (c *Crowd) People() float64 { return c.count }

// Factor returns how much of what a source has said about an arm counts.
func (c *Crowd) Factor(arm int, source string) float64 {
	return c.factor(arm, c.known.find(source))
}
