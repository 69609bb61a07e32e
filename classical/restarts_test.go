package classical

import (
	"math"
	"reflect"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/random"
)

func TestRestartsKeepTheBestOfTheirFits(t *testing.T) {
	const seed, restarts = 4, 5
	images := mixed(300)
	one := func(seed uint64) (Model, int, float64) {
		m := newModel(t, &KMeans{Components: 7, Iterations: 100}, mixedShape, seed)
		all := fitAll(t, m, images)
		return m, len(all), all[len(all)-1]
	}
	iterations, least := 0, math.Inf(1)
	var best Model
	for i := range restarts {
		s := uint64(seed)
		if i > 0 {
			s = random.Stream(seed, "restart", uint64(i)).Uint64()
		}
		m, count, e := one(s)
		iterations += count
		if e < least {
			best, least = m, e
		}
	}
	method := &KMeans{Components: 7, Iterations: 100, Restarts: restarts}
	m := newModel(t, method, mixedShape, seed)
	all := fitAll(t, m, images)
	if len(all) != iterations || all[len(all)-1] != least || method.Describe().MostIterations(false) != 500 {
		t.Errorf("got %d iterations to %v, the single fits have %d and %v", len(all), all[len(all)-1], iterations, least)
	}
	if !reflect.DeepEqual(m.Atoms(), best.Atoms()) {
		t.Error("the atoms are not those of the best fit")
	}
}

func TestADamagedStateBetweenRestartsIsRefused(t *testing.T) {
	images := mixed(60)
	method := &KMeans{Components: 7, Iterations: 2, Restarts: 3}
	m := newModel(t, method, mixedShape, 1)
	fatal.If(t, m.Begin(t.Context(), images))
	for range 3 {
		fatal.If(t, expect.Err(m.Step(t.Context())))
	}
	v := variant{"kmeans", method, false}
	names := 0
	for name := range m.State().Tensors {
		s := saved(t, m.State())
		delete(s.Tensors, name)
		refuses(t, v, s, "without "+name)
		names++
	}
	for name := range m.State().Numbers {
		s := saved(t, m.State())
		delete(s.Numbers, name)
		refuses(t, v, s, "without "+name)
		names++
	}
	expect.Equal(t, names, 2+3*2+3, "the state has", names, "names")
}
