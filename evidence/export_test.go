package evidence

// Tests compare these with other libraries.
var (
	CDF      = Beta.cdf
	Variance = Beta.variance
	Valid    = Beta.valid
)
