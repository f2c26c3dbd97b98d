package evidence

// What tests compare with other libraries.
var (
	CDF      = Beta.cdf
	Variance = Beta.variance
	Valid    = Beta.valid
)
