package fair

import "fmt"

// Limited describes what a source counts for, if it is less than all that it reported because it is
// limited to the share of one of so many people. It is "" if all of it counts.
func Limited(reported, countsFor, countsAgainst, people float64) string {
	if reported <= (countsFor+countsAgainst)*(1+1e-9) {
		return ""
	}
	return fmt.Sprintf("%.2f for and %.2f against, the most of one of %.0f people",
		countsFor, countsAgainst, people)
}
