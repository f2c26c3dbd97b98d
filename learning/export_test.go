package learning

// Watching returns how many fires a module waits for.
func (m *Module) Watching() int {
	m.fires.mu.Lock()
	defer m.fires.mu.Unlock()
	return max(len(m.fires.live), len(m.fires.order)-m.fires.dead)
}

// Ignoring returns of how many heuristics the ignores are counted.
func (m *Module) Ignoring() int {
	m.fires.mu.Lock()
	defer m.fires.mu.Unlock()
	return len(m.fires.ignores)
}
