package board

import (
	"math"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/chance"
	"github.com/heedhq/heed/lab/internal/kit"
)

// peers are the rules of other projects, as they publish them, with their parameters. Both draw
// from beliefs about qualities. The function returns the kind of a request.
func peers(kind func(r *request) string) []policy {
	return []policy{
		// The adaptive router of BerriAI/litellm: a belief of each model for each kind of request, at
		// first Beta(5, 5) for a model of the middle tier. An outcome that makes the sum of the shapes
		// greater than 200 is left out. Quality and cost are weighed by the world's price.
		peer("LiteLLM adaptive", evidence.Beta{Alpha: 5, Beta: 5}, 200,
			func(r *request) []string { return []string{kind(r)} }, first,
			func(t *trial, draw, cost float64) float64 { return t.world.reward(draw, cost) }),
		// The sampling of vllm-project/semantic-router: beliefs for all, for each user and for each
		// kind of request, which are blended by 0.7 and 0.3. Cheap models have up to a fifth more.
		peer("vLLM semantic-router", evidence.Beta{Alpha: 1, Beta: 1}, math.Inf(1),
			func(r *request) []string { return []string{"", "user " + r.source, "kind " + kind(r)} },
			func(of []evidence.Beta) evidence.Beta { return blend(blend(of[0], of[1], 0.7), of[2], 0.3) },
			func(t *trial, draw, cost float64) float64 {
				if t.world.price == 0 {
					return draw
				}
				return draw * (1 + 0.2*(1-cost))
			}),
	}
}

func first(of []evidence.Beta) evidence.Beta { return of[0] }

func blend(a, b evidence.Beta, part float64) evidence.Beta {
	return evidence.Beta{Alpha: (1-part)*a.Alpha + part*b.Alpha, Beta: (1-part)*a.Beta + part*b.Beta}
}

// A published router keeps a belief of each arm under each of a request's names.
type published struct {
	Beliefs map[string]map[int]evidence.Beta
	trial   *trial
	rng     chance.Rand
	prior   evidence.Beta
	most    float64 // of the sum of a belief's shapes
	names   func(r *request) []string
	join    func(of []evidence.Beta) evidence.Beta
	value   func(t *trial, draw, cost float64) float64
}

func peer(name string, prior evidence.Beta, most float64, names func(r *request) []string,
	join func(of []evidence.Beta) evidence.Beta, value func(t *trial, draw, cost float64) float64,
) policy {
	return policy{name, rule, func(t *trial, now func() time.Time, state []byte) router {
		p := &published{map[string]map[int]evidence.Beta{}, t,
			chance.Rand{State: draws(t, now).Uint64()}, prior, most, names, join, value}
		return resumed(p, &p.Beliefs, state)
	}}
}

// of returns the belief under a name, or the first name's where there is none.
func (p *published) of(names []string, n, arm int) evidence.Beta {
	if b, known := p.Beliefs[names[n]][arm]; known {
		return b
	}
	if n > 0 {
		return p.of(names, 0, arm)
	}
	return p.prior
}

func (p *published) choose(r *request) (int, any) {
	names, costs := p.names(r), p.trial.world.costs
	best, _ := kit.Best(len(costs), func(arm int) float64 {
		var all []evidence.Beta
		for n := range names {
			all = append(all, p.of(names, n, arm))
		}
		belief := p.join(all)
		sampler := chance.Beta(belief.Alpha, belief.Beta)
		return p.value(p.trial, sampler.Draw(&p.rng), costs[arm])
	})
	return best, nil
}

func (p *published) learn(o *outcome) {
	for _, name := range p.names(o.request) {
		of := p.Beliefs[name]
		if of == nil {
			of = make(map[int]evidence.Beta)
			p.Beliefs[name] = of
		}
		b, known := of[o.arm]
		if !known {
			b = p.prior
		}
		if b.Alpha+b.Beta+1 <= p.most {
			of[o.arm] = evidence.Beta{Alpha: b.Alpha + o.quality, Beta: b.Beta + 1 - o.quality}
		}
	}
}

func (p *published) save() []byte { return encode(p.Beliefs) }
