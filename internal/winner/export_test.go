package winner

// Against is the evidence against a gap.
var Against = against
