package money

// Charge is a choice with its outcome.
type Charge = charge

// Compare compares choices with what each arm alone would have done.
var Compare = compare
