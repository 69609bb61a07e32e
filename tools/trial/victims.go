package main

import (
	"fmt"

	"tessera"
	"tessera/attack"
	"tessera/config"
	"tessera/data"
	"tessera/losses"
)

const (
	whiteImages = 1000 // number of first test images for white-box attacks and transfer
	blackImages = 500  // number of test images for black-box attacks
	queries     = 1000 // number of queries per image
	stolen      = 5000 // index of the first test image whose predictions by the victim are used to steal it
)

var radii = []float64{0.1, 0.2, 0.3}

// victims prints a table for each data set.
func (s *study) victims() error {
	for _, dataset := range datasets {
		names := []string{"classifier", "classifier-robust"}
		if dataset == "fashion-mnist" {
			names[1] = "classifier-robust-0p1"
		}
		fmt.Printf("\n## %s\n\n", dataset)
		titles := []string{"linf", "attack"}
		var columns []map[string][]float64
		var rows []string
		for i, name := range names {
			titles = append(titles, name)
			numbers := map[string][]float64{}
			for seed := 1; seed <= seeds; seed++ {
				list, err := s.victim(dataset, name, names[1-i], seed)
				if err != nil {
					return err
				}
				rows = rows[:0]
				for _, n := range list {
					rows = append(rows, n.row)
					numbers[n.row] = append(numbers[n.row], n.value)
				}
			}
			columns = append(columns, numbers)
			if err := s.close(); err != nil {
				return err
			}
		}
		header(titles...)
		for _, r := range rows {
			row(r, spread(columns[0][r], 3), spread(columns[1][r], 3))
		}
	}
	return nil
}

// number is one number of a row. The name of the row consists of the radius and the attack.
type number struct {
	row   string
	value float64
}

// victim returns the numbers of one classifier. It returns an error if a transfer attack is stronger than the white-box
// attacks on the same images.
func (s *study) victim(dataset, name, other string, seed int) (list []number, err error) {
	open := func(name string) (*tessera.Run, error) {
		return s.run(s.folder(name, dataset, seed), name, dataset, seed)
	}
	judged := func(key string, limit int, from func() (*tessera.Run, error), trials ...attack.Trial) (*attack.Judgement, error) {
		return cell(s, fmt.Sprintf("%s-%s-%d-%s", name, dataset, seed, key), func() (*attack.Judgement, error) {
			run, err := open(name)
			if err != nil {
				return nil, err
			}
			a := tessera.HeadAttack{Trials: trials, Limit: limit}
			if from != nil {
				if a.From, err = from(); err != nil {
					return nil, err
				}
			}
			return run.AttackHead(s.ctx, a)
		})
	}
	all, err := judged("all", 0, nil, attack.Trial{Attack: attack.Attack{Method: attack.FGSM, Norm: attack.LInf, Epsilon: radii[0]}})
	if err != nil {
		return nil, err
	}
	agree, err := cell(s, fmt.Sprintf("%s-%s-%d-agreement", name, dataset, seed), func() (float64, error) {
		victim, err := open(name)
		if err != nil {
			return 0, err
		}
		thief, err := s.surrogate(victim, s.folder("stolen-"+name, dataset, seed))
		if err != nil {
			return 0, err
		}
		return s.agreement(victim, thief)
	})
	if err != nil {
		return nil, err
	}
	list = []number{{"- | clean, 10,000 images", all.Accuracy.Value}, {"- | agreement of the surrogate, 1,000 images", agree}}
	for _, e := range radii {
		white, err := judged(fmt.Sprint("white-", e), whiteImages, nil, attack.Trial{Attack: attack.Attack{Method: attack.FGSM, Norm: attack.LInf, Epsilon: e}},
			pgd(attack.LInf, e, 10, attack.CrossEntropy), pgd(attack.LInf, e, 10, attack.Margin))
		if err != nil {
			return nil, err
		}
		black, err := judged(fmt.Sprint("black-", e), blackImages, nil, pgd(attack.LInf, e, 10, attack.CrossEntropy),
			blackBox(attack.Square, attack.LInf, e, queries), blackBox(attack.Score, attack.LInf, e, queries), blackBox(attack.Decision, attack.LInf, e, queries))
		if err != nil {
			return nil, err
		}
		moved := pgd(attack.LInf, e, 0, attack.CrossEntropy)
		moved.Early = false // the example with the largest objective transfers best
		transfer, err := judged(fmt.Sprint("transfer-", e), whiteImages, func() (*tessera.Run, error) { return open(other) }, moved)
		if err != nil {
			return nil, err
		}
		theft, err := judged(fmt.Sprint("theft-", e), whiteImages, func() (*tessera.Run, error) {
			victim, err := open(name)
			if err != nil {
				return nil, err
			}
			return s.surrogate(victim, s.folder("stolen-"+name, dataset, seed))
		}, moved)
		if err != nil {
			return nil, err
		}
		add := func(text string, r attack.TrialResult) {
			list = append(list, number{fmt.Sprintf("%g | %s", e, text), r.Accuracy.Value})
		}
		add("FGSM", white.Trials[0])
		add("PGD-40, 10 restarts", white.Trials[1])
		add("PGD-40, 10 restarts, margin", white.Trials[2])
		add("PGD-40 from the other model", transfer.Trials[0])
		add("PGD-40 from the stolen surrogate", theft.Trials[0])
		add("PGD-40, 10 restarts, first 500", black.Trials[0])
		add("`square`, first 500", black.Trials[1])
		add("`score`, first 500", black.Trials[2])
		add("`decision`, first 500", black.Trials[3])
		for _, t := range []*attack.Judgement{transfer, theft} {
			if t.Trials[0].Accuracy.Value < white.Trials[1].Accuracy.Value {
				return nil, fmt.Errorf("%s: the transfer from %s leaves %g at %g, the white box %g", s.folder(name, dataset, seed), t.From, t.Trials[0].Accuracy.Value, e, white.Trials[1].Accuracy.Value)
			}
		}
	}
	return list, nil
}

// surrogate returns a model with the layers of the victim. It is trained on the victim's predictions for test images that
// neither the victim nor an attack of this study uses.
func (s *study) surrogate(victim *tessera.Run, folder string) (*tessera.Run, error) {
	sample, err := victim.Sample(s.ctx, data.TestSplit)
	if err != nil {
		return nil, err
	}
	images := sample.Images.Float32()
	images = images[len(images)/sample.Images.Len()*stolen:]
	answers, err := victim.Value("class", images)
	if err != nil {
		return nil, err
	}
	classes := len(answers) * sample.Images.Pixels() / len(images)
	memory, err := data.FromColumns(data.FloatColumn(losses.Images, victim.Shape(), images), data.FloatColumn("teacher", []int{classes}, answers))
	if err != nil {
		return nil, err
	}
	model, err := tessera.Declare(config.Model{
		Name: "surrogate", Dataset: config.Dataset{Source: memory}, Encoder: victim.Model.Encoder, Decoder: []config.Layer{},
		Heads:  victim.Model.Heads,
		Losses: []config.Loss{{Loss: &losses.Distillation{With: "teacher", Temperature: 1, Soft: 1}}},
		Train:  config.Train{Epochs: 40, Seed: victim.Model.Train.Seed},
	})
	if err != nil {
		return nil, err
	}
	return s.trained(folder, model, tessera.Options{Images: memory})
}

// agreement returns the share of the first test images for which two runs predict the same class.
func (s *study) agreement(a, b *tessera.Run) (float64, error) {
	sample, err := a.Sample(s.ctx, data.TestSplit)
	if err != nil {
		return 0, err
	}
	images := sample.Images.First(whiteImages).Float32()
	var labels [2][]int
	for i, run := range []*tessera.Run{a, b} {
		p, err := run.Predict("class", images)
		if err != nil {
			return 0, err
		}
		labels[i] = p.Labels
	}
	same := 0
	for i, c := range labels[0] {
		if labels[1][i] == c {
			same++
		}
	}
	return float64(same) / float64(len(labels[0])), nil
}
