// Quickstart is the smallest program that closes a loop: thumbs in, better answers out.
//
// Ann asks an assistant about her servers. She wants the bare command when something is on fire,
// and numbered steps when she wants to learn. The assistant has three ways to answer, and at first
// no information about her. After each answer she gives a thumb, or does not react.
//
// Usage:
//
//	go run ./examples/quickstart [-questions N] [-seed S] [-db DATABASE] [-me]
//
// It needs no model, no key and no service: its answers are written down in script.go. With -me you
// ask and give the thumbs. With -db the next run goes on from what this one learned.
package main
