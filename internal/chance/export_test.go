package chance

// Exp is compared with a formula.
var Exp = (*Rand).exp
