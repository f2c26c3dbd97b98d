package databases

import "github.com/heedhq/heed/lab/internal/card"

// Lines returns the lines.
func Lines() []card.Line {
	return []card.Line{
		powerCutLine(), relaxedLine(),
		killedLine(modernc, 100, 1000), killedLine(ncruces, 50, 500), killedLine(relaxed, 20, 200), killedLine(postgres, 50, 500),
		stoppedLine(),
		faultsLine("stores", storeEpisodes, 1, 1, []harm{once, cut}, []harm{once, twice, full, cut}),
		faultsLine("services", serviceEpisodes, 17, 1, []harm{once, cut}, []harm{once, full, cut}),
		readsLine(),
		appliesLine(modernc), appliesLine(ncruces), appliesLine(postgres),
		memoryApprovalsLine(), approvalsLine(modernc), approvalsLine(postgres),
		onceLine(modernc), onceLine(ncruces), onceLine(postgres),
		agreeLine(), orderLine(),
		versionsLine(modernc), versionsLine(postgres),
		soakLine(),
	}
}
