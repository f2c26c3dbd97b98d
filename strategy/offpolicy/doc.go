// Package offpolicy estimates what another policy would have earned, from a log of choices and
// their rewards.
package offpolicy
