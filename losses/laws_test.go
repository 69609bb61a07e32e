package losses_test

import (
	"fmt"
	"testing"

	"tessera/internal/fatal"
	_ "tessera/internal/testheap"
	"tessera/laws"
	"tessera/losses"
)

// settings lists the settings with which a loss is checked in addition to its defaults.
var settings = map[string][]map[string]any{
	"mse":                     {{}, {"relative": true}, {"censored": true}, {"relative": true, "censored": true}},
	"activity_floor":          {{}, {"relative": true}, {"relative": true, "floor": 0.5}},
	"cross_entropy":           {{}, {"label_smoothing": 0.2}, {"focal": 1.0}, {"focal": 2.5}, {"class_weights": []float64{0.5, 2, 1, 0, 3, 1}}, {"class_weights": []float64{0.5, 2, 1, 0, 3, 1}, "label_smoothing": 0.1}},
	"contrastive":             {{}, {"temperature": 1.0, "learned": true}},
	"trades":                  {{}, {"beta": 0.0}},
	"next_token":              {{}, {"shift": 0}, {"shift": 2}},
	"masked_token":            {{"hidden": "hidden"}},
	"distillation":            {{}, {"temperature": 4.0, "soft": 0.7}, {"soft": 0.0}},
	"independence":            {{}, {"score": "values"}, {"groups": 3}, {"measure": "hsic"}, {"measure": "hsic", "score": "values", "bandwidth": 2.0}},
	"separation":              {{}, {"score": "values"}, {"groups": 3, "classes": 3}, {"measure": "hsic"}},
	"relevance":               {{}, {"bend": 1.0}},
	"asymmetric_decay":        {{}, {"alpha": 0.5}, {"norm": "l1"}, {"norm": "l1", "alpha": 0.5}, {"alpha": 2.0}, {"norm": "smooth"}, {"norm": "smooth", "kappa": 1.5}, {"norm": "smooth", "alpha1": 2.0, "alpha2": 0.0}},
	"glove":                   {{}, {"x_max": 0.5}, {"alpha": 0.0}},
	"negative_sampling":       {{}, {"negatives": 0.5}},
	"dino":                    {{}, {"temperature": 1.0, "teacher_temperature": 0.5}},
	"kl":                      {{}, {"target": 0.01}, {"target": 0.9}, {"target": 0.99}},
	"gaussian_kl":             {{}, {"free_bits": 0.4}},
	"hoyer":                   {{}, {"target": 0.0}, {"target": 1.0}},
	"mean_hoyer":              {{}, {"target": 0.0}, {"target": 1.0}},
	"epsilon_l1":              {{}, {"target": 0.0, "epsilon": 1e-8}},
	"log":                     {{}, {"target": 0.0}},
	"max_approximation":       {{}, {"operator": "erosion"}, {"operator": "opening"}, {"operator": "closing"}, {"radius": 2}, {"element": "row"}, {"element": "011 010 000", "operator": "closing"}, {"relative": true}},
	"max_approximation_layer": {{}, {"relative": true}, {"layer": "decoder.0"}},
}

func TestEveryLossObeysItsLaws(t *testing.T) {
	for _, e := range losses.Registry.All() {
		variants := settings[e.Name]
		if variants == nil {
			variants = []map[string]any{{}}
		}
		if testing.Short() {
			variants = variants[:1]
		}
		for _, keys := range variants {
			fresh := func() losses.Loss {
				l := e.New()
				for key, value := range keys {
					fatal.If(t, laws.Set(l, key, value))
				}
				return l
			}
			t.Run(fmt.Sprint(e.Name, keys), func(t *testing.T) {
				t.Parallel()
				kit := laws.Loss
				if e.Name == "next_token" || e.Name == "masked_token" { // of four tokens of a vocabulary of three
					kit = laws.LossOf(laws.Inputs{On: []int{12}, Against: 4, Whole: 3})
				}
				laws.Check(t, kit, fresh)
			})
		}
	}
}

func TestEveryWeightObeysTheLaws(t *testing.T) {
	for _, e := range losses.Weights.All() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			laws.Check(t, laws.Weight, func() losses.Weight {
				w := e.New()
				if p, ok := w.(*losses.Points); ok { // its keys have no defaults
					p.Epochs, p.Weights = []float64{1, 1, 2.5}, []float64{0.5, 3, 1}
				}
				return w
			})
		})
	}
}
