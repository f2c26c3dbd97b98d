package learning

import (
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// bins is how many bins of equal width a reliability table has.
const bins = 10

// A Calibration measures how well predictions foretold how fires ended. Answers of the host's model
// have the heuristic "".
type Calibration struct {
	Overall           Reliability
	Heuristics, Paths map[string]Reliability
}

// A Reliability compares predictions with outcomes.
type Reliability struct {
	N uint64 // fires with a prediction that ended
	// Brier is the mean of (prediction - outcome)², with outcomes of 0 and 1. 0 is perfect, and a
	// constant ½ gives ¼ (Brier 1950).
	Brier float64
	// Error is the expected calibration error: the mean distance between the predictions of a bin and
	// its rate of success, weighted by N (Naeini, Cooper and Hauskrecht 2015).
	Error float64
	// Table has ten bins, the lowest predictions first. Bin i holds those in [i/10, (i+1)/10), and
	// the last one 1 too.
	Table [bins]struct {
		N          uint64
		Prediction float64 // the mean of the predictions; 0 without predictions
		Success    float64 // the rate of success; 0 without predictions
	}
}

// Calibration compares the predictions given with fires and the ways in which those fires ended.
func (m *Module) Calibration(ctx context.Context) (_ Calibration, err error) {
	defer doing("calibration", &err)
	var overall forecasts
	heuristics, paths := map[string]*forecasts{}, map[string]*forecasts{}
	for part, err := range m.cfg.Store.List(ctx, store.CellQuery{Kind: m.kinds.calibration}) {
		if err != nil {
			return Calibration{}, err
		}
		path, bin, success, ok := parseCalibration(part.Cell.Name)
		if !ok {
			continue
		}
		overall.add(bin, success, &part.Tally)
		of(heuristics, part.Cell.Item).add(bin, success, &part.Tally)
		of(paths, path).add(bin, success, &part.Tally)
	}
	return Calibration{overall.reliability(), reliabilities(heuristics), reliabilities(paths)}, nil
}

func of(all map[string]*forecasts, key string) *forecasts {
	if all[key] == nil {
		all[key] = &forecasts{}
	}
	return all[key]
}

func reliabilities(all map[string]*forecasts) map[string]Reliability {
	made := make(map[string]Reliability, len(all))
	for key, f := range all {
		made[key] = f.reliability()
	}
	return made
}

// calibrationCell returns the cell of a prediction: one for each heuristic, path, bin and result.
// The reward is the prediction, so that a tally holds the sums of the predictions and of their
// squares.
func (m *Module) calibrationCell(w *answer.Fire, success bool) evidence.Cell {
	bin := min(int(*w.Prediction*bins), bins-1)
	return evidence.Cell{
		Kind: m.kinds.calibration, Item: w.Heuristic,
		Name: w.Path + "/" + strconv.Itoa(bin) + "/" + strconv.FormatBool(success),
	}
}

func parseCalibration(name string) (path string, bin int, success, ok bool) {
	parts := strings.Split(name, "/")
	if len(parts) != 3 {
		return "", 0, false, false
	}
	bin, err := strconv.Atoi(parts[1])
	if err != nil || bin < 0 || bin >= bins {
		return "", 0, false, false
	}
	return parts[0], bin, parts[2] == "true", true
}

// forecasts are sums over predictions.
type forecasts struct {
	n, successes, predicted [bins]float64
	squares                 float64 // Σ (prediction - outcome)²
}

func (f *forecasts) add(bin int, success bool, t *evidence.Tally) {
	f.n[bin] += t.Mass
	f.predicted[bin] += t.Reward
	f.squares += t.RewardSquares
	if success {
		f.successes[bin] += t.Mass
		f.squares += t.Mass - 2*t.Reward
	}
}

func (f *forecasts) reliability() (r Reliability) {
	var n float64
	for i := range r.Table {
		if f.n[i] == 0 {
			continue
		}
		n += f.n[i]
		row := &r.Table[i]
		row.N, row.Prediction, row.Success = uint64(f.n[i]), f.predicted[i]/f.n[i],
			f.successes[i]/f.n[i]
		r.Error += math.Abs(f.predicted[i] - f.successes[i])
	}
	if n > 0 {
		r.N, r.Brier, r.Error = uint64(n), max(f.squares/n, 0), r.Error/n
	}
	return r
}
