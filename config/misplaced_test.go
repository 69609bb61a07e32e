package config

import (
	"testing"

	"tessera/internal/expect"
)

// A key of the optimizer in train, or at the top of a model, and a key of train in the optimizer are errors that say where they belong.
func TestAMisplacedKeyIsSentToItsTable(t *testing.T) {
	for text, want := range map[string]string{
		"learning_rate = 0.1":               `did you mean "optimizer.learning_rate"?`,
		"train = { learning_rate = 0.1 }":   `did you mean "optimizer.learning_rate"?`,
		"train = { lr = 0.1 }":              `did you mean "optimizer.learning_rate"?`,
		"train = { weight_decay = 0.1 }":    `did you mean "optimizer.weight_decay"?`,
		"train = { schedule = \"cosine\" }": `did you mean "optimizer.schedule"?`,
		"optimizer = { epochs = 3 }":        `did you mean "train.epochs"?`,
	} {
		f, err := Load("models.toml", []byte("[model.a]\ndataset = { name = \"bars\" }\nencoder = [{ kind = \"dense\", units = 3 }]\n"+text+"\n"))
		if err == nil {
			_, err = f.Model("a")
		}
		expect.Error(t, err, want, text)
	}
}
