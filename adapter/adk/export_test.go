package adk

// Turns returns how many turns are not forgotten.
func Turns(a *Adapter) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.turns)
}
