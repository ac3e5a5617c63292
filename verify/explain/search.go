package explain

import (
	"slices"
	"time"
)

// budget bounds the search: how many bytes of bodies are hashed.
const budget = 2 << 30

// most is how many repairs a report lists.
const most = 5

// repair is one change that may make a signature match.
type repair struct {
	Finding
	apply func(*attempt)
}

// search tries combinations of repairs, the fewest first.
type search struct {
	now    time.Time
	base   attempt
	budget int
	tried  int
}

// run tries each repair, and then each two of different kinds: a re-serialised
// body under a key in the wrong format does happen. Kinds are in order of how
// likely their repairs are.
func (s *search) run(kinds [][]repair) (found []Finding) {
	for _, kind := range kinds {
		for _, r := range kind {
			if !slices.Contains(found, r.Finding) && s.try(r) {
				found = append(found, r.Finding)
			}
		}
	}
	for i, first := range kinds {
		for _, second := range kinds[i+1:] {
			if len(found) > 0 {
				return found[:min(len(found), most)]
			}
			found = s.pairs(first, second)
		}
	}
	return found[:min(len(found), most)]
}

func (s *search) pairs(first, second []repair) (found []Finding) {
	for _, a := range first {
		for _, b := range second {
			if s.try(a, b) {
				return []Finding{{a.Code + "+" + b.Code, a.Text + " Also: " + b.Text}}
			}
		}
	}
	return nil
}

func (s *search) try(repairs ...repair) bool {
	a := s.base
	for _, r := range repairs {
		r.apply(&a)
	}
	if s.budget -= len(a.request.Body) + 4<<10; s.budget < 0 {
		return false
	}
	s.tried++
	return a.matches(s.now)
}

// repairs are all that is tried, by kind.
func repairs(in Input) [][]repair {
	return [][]repair{bodyRepairs(in), secretRepairs(in), urlRepairs(in), schemeRepairs(in)}
}
