package config

import (
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

const skipping = `
[model.m]
encoder = [{ kind = "conv2d", filters = 2 }, { kind = "dense", units = 4 }]
decoder = [{ kind = "dense", units = 1024 }, { kind = "reshape", shape = [32, 32] }, { kind = "conv2d", filters = 1, from = ["previous", "encoder.0"] }]
loss = [{ kind = "mse" }, { kind = "l2", on = "h" }]

[model.m.head.h]
from = ["code", "decoder.0"]
layers = [{ kind = "dense", units = 2 }]
`

func TestLayersAndHeadsReadNamedValues(t *testing.T) {
	m := model(t, load(t, skipping), "m")
	l, err := m.Layout([]int{32, 32})
	fatal.If(t, err)
	if in := l.Decoder[2].In; len(in) != 3 || in[2] != 3 {
		t.Errorf("the last layer of the decoder reads the shape %v", in)
	}
	if in := l.Heads[0].Layers[0].In; len(in) != 1 || in[0] != 4+1024 {
		t.Errorf("the head reads the shape %v", in)
	}
	expect.AnyError(t, l.Decodes(), "the output can be computed from the code alone")
	checkFillRoundTrip(t, m)
}

func TestWrongNamesOfValuesAreReportedWhereTheyAre(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"no such layer":          {`"encoder.0"]`, `"encoder.7"]`, `decoder[2] (conv2d): from: unknown value "encoder.7"`},
		"no such value":          {`"encoder.0"]`, `"encoder.0.mean"]`, `decoder[2] (conv2d): from: unknown value "encoder.0.mean"`},
		"a misspelt value":       {`["code", "decoder.0"]`, `["code", "decoder.O"]`, `head.h: from: unknown value "decoder.O"`},
		"shapes that do not fit": {`shape = [32, 32]`, `shape = [16, 64]`, `decoder[2] (conv2d): from: encoder.0 has shape 32x32x2 = 2048, but decoder.1 has 16x64 = 1024: want the same but for the last axis`},
		"a later layer":          {`{ kind = "dense", units = 4 }`, `{ kind = "dense", units = 4, from = "decoder.0" }`, `from: a cycle: decoder.0 -> encoder.1 -> decoder.0`},
		"itself":                 {`"encoder.0"]`, `"decoder.2"]`, `decoder[2] (conv2d): from: a cycle: decoder.2 -> decoder.2`},
		"read by nothing":        {`units = 4 }`, `units = 4, from = "images" }`, ``},
		"a layer without reader": {`from = ["previous", "encoder.0"]`, `from = "encoder.0"`, `decoder[1] (reshape): nothing reads the output of decoder.1`},
		"a number":               {`["code", "decoder.0"]`, `3`, `head.h: from: got 3, want a name or an array of names`},
		"no names":               {`["code", "decoder.0"]`, `[]`, `head.h: from: got no names`},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(skipping, c.old, c.new, 1)
			if text == skipping {
				t.Fatal("nothing was changed")
			}
			err := load(t, text).Check()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestWrongSharesAndTeachersAreReportedWhereTheyAre(t *testing.T) {
	const right = `
[model.m]
encoder = [{ kind = "dense", units = 5 }, { kind = "dense", units = 5 }, { kind = "dense", units = 5, share = "encoder.1" }]
loss = [{ kind = "mse" }, { kind = "consistency", teacher = "slow" }]
hook = { slow = { kind = "teacher", decay = 0.9 }, average = {} }
`
	fatal.If(t, load(t, right).Check())
	checkFillRoundTrip(t, model(t, load(t, right), "m"))
	for name, c := range map[string]struct{ old, new, want string }{
		"no such layer":             {`"encoder.1"`, `"encoder.9"`, `encoder[2] (dense): share: "encoder.9" is not the path of a layer`},
		"not a layer":               {`"encoder.1"`, `"images"`, `encoder[2] (dense): share: "images" is not the path of a layer`},
		"other shapes":              {`"encoder.1"`, `"encoder.0"`, `encoder[2] (dense): share: encoder.0.weight has the shape [1024 5], but here [5 5] is needed`},
		"no such teacher":           {`teacher = "slow"`, `teacher = "slo"`, `loss[1] (consistency): teacher: the model has no hook "slo"`},
		"a hook that lends none":    {`teacher = "slow"`, `teacher = "average"`, `loss[1] (consistency): teacher: the hook "average" lends no parameters`},
		"a decay that is too large": {`decay = 0.9`, `decay = 1.5`, `hook.slow (teacher): decay: got 1.5, want a number in (0,1)`},
		"a published value that there is not": {`{ kind = "consistency", teacher = "slow" }`, `{ kind = "consistency", teacher = "slow" }, { kind = "gaussian_kl" }`,
			`loss[2] (gaussian_kl): on: gaussian_kl reads the value mean of a layer, but encoder.2 (dense) publishes none`},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(right, c.old, c.new, 1)
			expect.Error(t, load(t, text).Check(), c.want)
		})
	}
}

// A term that reads what the last layer of a head publishes needs views and a teacher as one that reads its output does.
func TestATermOfPublishedValuesNeedsViewsAndATeacher(t *testing.T) {
	const text = `
[model.m]
encoder = [{ kind = "dense", units = 3 }]
loss    = [{ kind = "mse" }, { kind = "dino" }]
view    = [{ augment = ["flip"] }]
head.projection.layers = [{ kind = "dense", units = 4 }, { kind = "teacher_centre" }]
hook    = { teacher = { decay = 0.9 } }
`
	for old, want := range map[string]string{
		`hook    = { teacher = { decay = 0.9 } }`: "loss[1] (dino): dino reads the values of a teacher, but the model has none",
		`view    = [{ augment = ["flip"] }]`:      "loss[1] (dino): dino compares the two views of each image, but the model has none",
		`{ kind = "dino" }`:                       "",
	} {
		now := ""
		if want == "" {
			now = old
		}
		err := load(t, strings.Replace(text, old, now, 1)).Check()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("without %s: got %v, want %q", old, err, want)
		}
	}
}

// If no layer publishes what a term reads, the message names the layer to add.
func TestTheLayerThatATermNeedsIsNamed(t *testing.T) {
	const text = `
[model.m]
encoder = [{ kind = "dense", units = 3 }]
loss    = [{ kind = "mse" }, TERM]
view    = [{ augment = ["flip"] }]
head.projection.layers = [{ kind = "dense", units = 4 }]
hook    = { teacher = { decay = 0.9 } }
`
	for term, want := range map[string]string{
		`{ kind = "dino" }`:       "end the head with a layer teacher_centre",
		`{ kind = "commitment" }`: "end the encoder with a layer vq",
	} {
		expect.Error(t, load(t, strings.Replace(text, "TERM", term, 1)).Check(), want, term)
	}
}

// Each teacher's values would move the centre: which of them it follows must not depend on the order of the terms.
func TestACentreFollowsOneTeacher(t *testing.T) {
	const declared = `
[model.m]
encoder = [{ kind = "dense", units = 3, activation = "tanh" }]
loss    = [{ kind = "mse" }, { kind = "dino" }, TERM]
view    = [{ augment = ["flip"] }]
head.projection.layers = [{ kind = "dense", units = 4 }, { kind = "teacher_centre" }]
hook    = { teacher = { decay = 0.9 }, slow = { kind = "teacher", decay = 0.999 } }
`
	for _, c := range []struct{ term, want string }{
		{`{ kind = "dino", name = "again", weight = 0.5 }`, ""}, // the same values of the teacher
		{`{ kind = "consistency" }`, ""},                        // does not read the centred values
		{`{ kind = "consistency", on = "head.projection.0", teacher = "slow" }`, ""},
		{`{ kind = "dino", name = "other", teacher = "slow" }`, `loss[2] (dino): head.projection.1 (teacher_centre) already follows the views of the teacher "teacher", ` +
			`for loss[1]; this term would move it by the views of the teacher "slow", too`},
		{`{ kind = "consistency", on = "projection" }`, `this term would move it by the images of the teacher "teacher", too`},
		{`{ kind = "byol", on = "code", target = "projection", teacher = "slow" }`, `loss[2] (byol): head.projection.1`},
	} {
		err := load(t, strings.Replace(declared, "TERM", c.term, 1)).Check()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", c.term, err, c.want)
		}
	}
}
