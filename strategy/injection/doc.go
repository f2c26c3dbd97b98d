// Package injection is a catalogue of arms for agents: the four ways of bringing a learning into a
// session, with their parameters. Package strategy learns which of them works. A host acts on the
// choice, which [Of] reads.
package injection
