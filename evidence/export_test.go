package evidence

// Tests compare these with other libraries, or with formulas.
var (
	CDF      = Beta.cdf
	Variance = Beta.variance
	Valid    = Beta.valid
)
