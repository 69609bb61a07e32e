package main

import (
	"fmt"
	"slices"

	"tessera"
	"tessera/attack"
	"tessera/attack/runs"
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

// victims prints two tables for each data set.
func (s *study) victims() error {
	for _, dataset := range datasets {
		names := []string{"classifier", "classifier-robust"}
		if dataset == "fashion-mnist" {
			names[1] = "classifier-robust-0p1"
		}
		var columns []map[number][]float64
		var rows []number // in their order
		titles := []string{"attack"}
		for i, name := range names {
			column := map[number][]float64{}
			for seed := 1; seed <= seeds; seed++ {
				add := func(n number, value float64) {
					if i == 0 && seed == 1 {
						rows = append(rows, n)
					}
					column[n] = append(column[n], value)
				}
				if err := s.victim(dataset, name, names[1-i], seed, add); err != nil {
					return err
				}
			}
			columns = append(columns, column)
			for _, e := range radii {
				titles = append(titles, fmt.Sprintf("`%s`, %g", name, e))
			}
			if err := s.close(); err != nil {
				return err
			}
		}
		fmt.Printf("\n## %s\n\n", dataset)
		header("", "`"+names[0]+"`", "`"+names[1]+"`")
		for _, n := range rows {
			if n.radius == 0 {
				row(n.attack, spread(columns[0][n], 3), spread(columns[1][n], 3))
			}
		}
		fmt.Println()
		header(titles...)
		for _, n := range rows {
			if n.radius != radii[0] {
				continue
			}
			cells := []string{n.attack}
			for _, column := range columns {
				for _, e := range radii {
					cells = append(cells, spread(column[number{n.attack, e}], 3))
				}
			}
			row(cells...)
		}
	}
	return nil
}

// number names an accuracy: that of an attack in a ball, or with radius 0 of no attack.
type number struct {
	attack string
	radius float64
}

// victim adds the numbers of one classifier. It is an error if a transfer is stronger than the white boxes on the same images.
func (s *study) victim(dataset, name, other string, seed int, add func(number, float64)) error {
	open := func(name string) (*tessera.Run, error) {
		return s.run(s.folder(name, dataset, seed), name, dataset, seed)
	}
	judged := func(key string, limit int, from func() (*tessera.Run, error), trials ...attack.Trial) (*attack.Judgement, error) {
		return cell(s, fmt.Sprintf("%s-%s-%d-%s", name, dataset, seed, key), func() (*attack.Judgement, error) {
			run, err := open(name)
			if err != nil {
				return nil, err
			}
			a := runs.HeadAttack{Trials: trials, Limit: limit}
			if from != nil {
				if a.From, err = from(); err != nil {
					return nil, err
				}
			}
			return runs.Judge(s.ctx, run, a)
		})
	}
	all, err := judged("all", 0, nil, attack.Trial{Attack: attack.Attack{Method: attack.FGSM, Norm: attack.LInf, Epsilon: radii[0]}})
	if err != nil {
		return err
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
		return err
	}
	add(number{"clean, 10,000 images", 0}, all.Accuracy.Value)
	add(number{"agreement of the surrogate, 1,000 images", 0}, agree)
	for _, e := range radii {
		white, err := judged(fmt.Sprint("white-", e), whiteImages, nil, attack.Trial{Attack: attack.Attack{Method: attack.FGSM, Norm: attack.LInf, Epsilon: e}},
			pgd(attack.LInf, e, 10, attack.CrossEntropy), pgd(attack.LInf, e, 10, attack.Margin))
		if err != nil {
			return err
		}
		black, err := judged(fmt.Sprint("black-", e), blackImages, nil, pgd(attack.LInf, e, 10, attack.CrossEntropy),
			blackBox(attack.Square, attack.LInf, e, queries), blackBox(attack.Score, attack.LInf, e, queries), blackBox(attack.Decision, attack.LInf, e, queries))
		if err != nil {
			return err
		}
		moved := pgd(attack.LInf, e, 0, attack.CrossEntropy)
		moved.Early = false // the example with the largest objective transfers best
		transfer, err := judged(fmt.Sprint("transfer-", e), whiteImages, func() (*tessera.Run, error) { return open(other) }, moved)
		if err != nil {
			return err
		}
		theft, err := judged(fmt.Sprint("theft-", e), whiteImages, func() (*tessera.Run, error) {
			victim, err := open(name)
			if err != nil {
				return nil, err
			}
			return s.surrogate(victim, s.folder("stolen-"+name, dataset, seed))
		}, moved)
		if err != nil {
			return err
		}
		add(number{"FGSM", e}, white.Trials[0].Accuracy.Value)
		add(number{"PGD-40, 10 restarts", e}, white.Trials[1].Accuracy.Value)
		add(number{"PGD-40, 10 restarts, margin", e}, white.Trials[2].Accuracy.Value)
		add(number{"PGD-40 from the other model", e}, transfer.Trials[0].Accuracy.Value)
		add(number{"PGD-40 from the stolen surrogate", e}, theft.Trials[0].Accuracy.Value)
		add(number{"PGD-40, 10 restarts, first 500", e}, black.Trials[0].Accuracy.Value)
		add(number{"`square`, first 500", e}, black.Trials[1].Accuracy.Value)
		add(number{"`score`, first 500", e}, black.Trials[2].Accuracy.Value)
		add(number{"`decision`, first 500", e}, black.Trials[3].Accuracy.Value)
		for _, t := range []*attack.Judgement{transfer, theft} {
			if t.Trials[0].Accuracy.Value < white.Trials[1].Accuracy.Value {
				return fmt.Errorf("%s: the transfer from %s leaves %g at %g, the white box %g", s.folder(name, dataset, seed), t.From, t.Trials[0].Accuracy.Value, e, white.Trials[1].Accuracy.Value)
			}
		}
	}
	return nil
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
	labels := make([]int32, len(answers)/classes)
	for i := range labels {
		z := answers[i*classes : (i+1)*classes]
		labels[i] = int32(slices.Index(z, slices.Max(z)))
	}
	memory, err := data.FromColumns(data.FloatColumn(losses.Images, victim.Shape(), images), data.WholeColumn(losses.Labels, nil, labels),
		data.FloatColumn("teacher", []int{classes}, answers))
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
