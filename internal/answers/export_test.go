package answers

// Keys are what the record of an answer is found by.
var Keys = keysOf

// MaxStated is what the tests of other packages of this folder use.
const MaxStated = maxStated

// Sum adds up judgements of one sign.
type Sum = sum

// Agreement is the sum of AgreementParts before it is divided.
func (r *Reception) Agreement(agrees, independent bool, agreement, disagreement float64) float64 {
	return r.agreement(agrees, independent, agreement, disagreement)
}
