package main

import "slices"

// variants lists settings that no shipped model has: optimizers, schedules, hooks, data sets, the other back end.
var variants = []struct {
	name    string
	model   string // shipped model whose settings are changed
	dataset string // data set; "" for that of the model
	args    []string
}{
	{"optimizer-sgd", "swimmer-parts", "", sets(`optimizer={ kind = "sgd", momentum = 0.9, nesterov = true, learning_rate = 0.01 }`)},
	{"optimizer-adamw", "swimmer-parts", "", sets(`optimizer={ kind = "adamw", weight_decay = 0.01, clip_norm = 0.1 }`)},
	{"optimizer-adagrad", "swimmer-parts", "", sets(`optimizer.kind=adagrad`)},
	{"optimizer-rmsprop", "swimmer-parts", "", sets(`optimizer.kind=rmsprop`)},
	{"schedule-step", "swimmer-parts", "", sets(`optimizer.schedule={ kind = "step", epochs = 1 }`)},
	{"schedule-exponential", "swimmer-parts", "", sets(`optimizer.schedule.kind=exponential`)},
	{"early-stopping", "swimmer-parts", "", sets(`train.epochs=4`, `hook.early_stopping.patience=1`, `hook.early_stopping.min_delta=1.0`, `dataset.validation=0.25`)},
	{"average", "swimmer-parts", "", sets(`hook.average={ decay = 0.9 }`)},
	{"adversarial-fgsm", "swimmer-parts", "", sets(`hook.adversarial={ method = "fgsm", norm = "linf", epsilon = 0.05 }`)},
	{"back-end-tape", "swimmer-parts", "", []string{"--backend", "tape"}},
	{"seed", "shallow-nonneg-kl", "", sets(`train.seed=7`)},
	{"held-out", "shallow-nonneg-kl", "", sets(`dataset.validation=0.2`)},
	{"mnist", "shallow-nonneg-kl", "mnist", sets(`dataset.name=mnist`)},
	{"bars", "swimmer-parts", "bars", sets(`dataset.name=bars`)},
	{"nmf-kullback-leibler", "nmf-mu", "", sets(`loss=kl`)},
	{"nmf-online", "nmf", "", sets(`batch=64`)},
	{"sparse-nmf-images", "sparse-nmf", "", sets(`per=image`)},
}

func sets(changes ...string) []string {
	var args []string
	for _, change := range changes {
		args = append(args, "--set", change)
	}
	return args
}

func variantsOf(models map[string]subject) []subject {
	var subjects []subject
	for _, v := range variants {
		s, ok := models[v.model]
		if !ok {
			continue
		}
		s.kind, s.name, s.args = kindVariant, v.name, slices.Concat(s.args, v.args)
		if v.dataset != "" {
			s.dataset = v.dataset
		}
		subjects = append(subjects, s)
	}
	return subjects
}
