package best

// Indifferent returns a configuration with another difference that does not matter.
func Indifferent(c Config, difference float64) Config {
	c.indifference = difference
	return c
}
