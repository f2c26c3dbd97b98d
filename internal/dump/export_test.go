package dump

// Fits reports whether a tally can be one of a cell.
func (t *Tally) Fits(c *Cell) error { return t.fits(c) }
