package tessera_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"

	"gorgonia.org/gorgonia"
	"tessera"
	"tessera/apps/serve"
	"tessera/classical"
	"tessera/config"
	"tessera/data"
	"tessera/graph/ops"
	"tessera/layers"
	"tessera/losses"
)

// runs is the folder for the runs of the examples.
var runs = func() string {
	dir, err := os.MkdirTemp("", "tessera-examples")
	if err != nil {
		log.Fatal(err)
	}
	return dir
}()

// The example trains a shipped model and uses it to encode images and to decode codes.
func Example() {
	shorter, err := config.ParseSet("train.epochs=150")
	if err != nil {
		log.Fatal(err)
	}
	model, err := tessera.Shipped().Model("swimmer-parts", shorter)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background() // cancel it, and training ends with a checkpoint
	run, err := tessera.Train(ctx, model, tessera.Options{
		Out: filepath.Join(runs, "swimmer"),
		Report: func(p tessera.Progress) {
			if p.EpochDone && p.Epoch%50 == 0 {
				fmt.Printf("epoch %d of %d\n", p.Epoch, p.Epochs)
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer run.Close()

	images := make([]float32, 2*32*32) // two empty images, row by row
	codes, err := run.Encode(images)
	if err != nil {
		log.Fatal(err)
	}
	outputs, err := run.Decode(codes)
	if err != nil {
		log.Fatal(err)
	}
	result, err := run.Evaluate(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(codes), "activations,", len(outputs), "pixels")
	mse, _ := result.Number("mse")
	negative, _ := result.Number("negative_weights")
	fmt.Println("mse below 0.01:", mse < 0.01, "- negative weights:", negative)
	// Output:
	// epoch 50 of 150
	// epoch 100 of 150
	// epoch 150 of 150
	// 40 activations, 2048 pixels
	// mse below 0.01: true - negative weights: 0
}

// The example trains a model that is declared in Go on images in memory, and encodes images from several goroutines.
func ExampleDeclare() {
	values, images := bright()
	model, err := tessera.Declare(config.Model{
		Name:    "rows",
		Dataset: config.Dataset{Source: images},
		Encoder: []config.Layer{{Layer: &layers.Dense{Units: 6, Activation: "sigmoid"}}},
		Losses:  []config.Loss{{Loss: &losses.MSE{}}, {Weight: &losses.Constant{Value: 0.01}, Loss: &losses.KL{Target: 0.2}}},
		Train:   config.Train{Epochs: 5, Batch: 8},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	run, err := tessera.Train(ctx, model, tessera.Options{Out: filepath.Join(runs, "rows")})
	if err != nil {
		log.Fatal(err)
	}
	defer run.Close()

	encoder, err := run.Encoder(tessera.EncoderOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer encoder.Close()
	codes, err := encoder.Encode(ctx, nil, values[:3*36]) // from any goroutine
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(codes)/encoder.Units(), "codes of", encoder.Units(), "activations")
	count := 0
	for _, err := range encoder.Stream(ctx, slices.Chunk(values, 36)) {
		if err != nil {
			log.Fatal(err)
		}
		count++
	}
	fmt.Println(count, "codes one after the other")
	// Output:
	// 3 codes of 6 activations
	// 40 codes one after the other
}

// The example reads a model from a file, changes it like --set, trains it briefly and opens it again.
func ExampleOpen() {
	file := filepath.Join(runs, "models.toml")
	text := `
[model.tiny]
dataset = "bars"
encoder = [{ kind = "dense", units = 16, activation = "sigmoid" }]
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}
	models, err := tessera.Load(file)
	if err != nil {
		log.Fatal(err)
	}
	set, err := config.ParseSet("train.epochs=2")
	if err != nil {
		log.Fatal(err)
	}
	model, err := models.Model("tiny", set)
	if err != nil {
		log.Fatal(err) // *table.Diagnostics: every error with its line
	}
	trained, err := tessera.Train(context.Background(), model, tessera.Options{Out: filepath.Join(runs, "tiny")})
	if err != nil {
		log.Fatal(err)
	}
	defer trained.Close()

	run, err := tessera.Open(filepath.Join(runs, "tiny"), tessera.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer run.Close()
	atoms := run.Atoms()
	fmt.Println(run.Model.Name, "after epoch", run.Epoch, "has", atoms.Count, "atoms of shape", atoms.Shape)
	// Output: tiny after epoch 2 has 16 atoms of shape [8 8]
}

// bright returns 40 images of 6x6 pixels, each with one bright row.
func bright() (values []float32, images *data.Memory) {
	values = make([]float32, 40*6*6)
	for i := range 40 {
		for j := range 6 {
			values[i*36+i%6*6+j] = 1
		}
	}
	images, err := data.FromFloats(values, []int{6, 6}, nil)
	if err != nil {
		log.Fatal(err)
	}
	return values, images
}

// The example trains a model by a loop of its own, without a folder, until the loss is small, and saves it as a run.
func ExampleNewTrainer() {
	_, images := bright()
	model, err := tessera.Declare(config.Model{
		Dataset: config.Dataset{Source: images},
		Encoder: []config.Layer{{Layer: &layers.Dense{Units: 6, Activation: "sigmoid"}}},
		Train:   config.Train{Epochs: 1000, Batch: 8},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	trainer, err := tessera.NewTrainer(ctx, model, tessera.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer trainer.Close()
	for !trainer.Done() {
		step, err := trainer.Step(ctx)
		if err != nil {
			log.Fatal(err)
		}
		if step.Step == 1 {
			gradient, err := trainer.Gradient("encoder.0.weight")
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(len(trainer.Batch()), "samples,", len(gradient), "derivatives")
		}
		if step.Loss < 0.05 {
			break
		}
	}
	run, err := trainer.Run() // in memory
	if err != nil {
		log.Fatal(err)
	}
	defer run.Close()
	codes, err := run.Encode(make([]float32, 36))
	if err != nil {
		log.Fatal(err)
	}
	if err := trainer.Save(filepath.Join(runs, "own-loop"), false); err != nil { // `tessera resume` continues it
		log.Fatal(err)
	}
	saved, err := tessera.Open(filepath.Join(runs, "own-loop"), tessera.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer saved.Close()
	fmt.Println(len(codes), "activations; saved:", saved.Step == run.Step)
	// Output:
	// 8 samples, 216 derivatives
	// 6 activations; saved: true
}

// The example stops a training and uses the run of its checkpoint.
func ExampleTrain_interrupted() {
	model := small(1000)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	run, err := tessera.Train(ctx, model, tessera.Options{Out: filepath.Join(runs, "stopped"), Report: func(p tessera.Progress) {
		if p.EpochDone && p.Epoch == 3 {
			stop()
		}
	}})
	if !errors.Is(err, tessera.ErrInterrupted) {
		log.Fatal(err)
	}
	defer run.Close()
	codes, err := run.Encode(make([]float32, 36))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(codes), "activations after epoch", run.Epoch)
	// Output: 6 activations after epoch 3
}

// The example is the guide to an encoder in a Go service: it opens the run of a shipped model, encodes images from any goroutine, reads
// the model from one file, and serves it next to a handler of the program.
func Example_service() {
	ctx := context.Background()
	brief, err := config.ParseSet("train.epochs=1")
	if err != nil {
		log.Fatal(err)
	}
	model, err := tessera.Shipped().Model("swimmer-parts", brief)
	if err != nil {
		log.Fatal(err)
	}
	trained, err := tessera.Train(ctx, model, tessera.Options{Out: filepath.Join(runs, "swimmer-parts")})
	if err != nil {
		log.Fatal(err)
	}
	defer trained.Close()

	run, err := tessera.Open(filepath.Join(runs, "swimmer-parts"), tessera.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer run.Close()

	images := make([]float32, 3*32*32) // three images, row by row, in [0,1]
	encoder, err := run.Encoder(tessera.EncoderOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer encoder.Close()
	codes, err := encoder.Encode(ctx, nil, images) // from any goroutine
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(codes)/encoder.Units(), "codes of", encoder.Units(), "activations")

	file, err := os.ReadFile(filepath.Join(runs, "swimmer-parts", "model.safetensors")) // or embedded: //go:embed model.safetensors
	if err != nil {
		log.Fatal(err)
	}
	alone, err := tessera.ReadModel(file, tessera.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer alone.Close()
	again, err := alone.Encode(images)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the same from one file:", slices.Equal(again, codes))

	models, err := serve.New([]serve.Model{{Name: "swimmer-parts", Run: run}}, serve.Options{}) // run stays yours
	if err != nil {
		log.Fatal(err)
	}
	defer models.Close()
	mux := http.NewServeMux()
	mux.Handle("/v2/", models)
	mux.HandleFunc("/hello", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	for _, path := range []string{"/v2/models/swimmer-parts/ready", "/hello"} {
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		fmt.Println(path, answer.Code)
	}
	// Output:
	// 3 codes of 20 activations
	// the same from one file: true
	// /v2/models/swimmer-parts/ready 200
	// /hello 200
}

// small returns a model of bright rows.
func small(epochs int) *config.Model {
	_, images := bright()
	model, err := tessera.Declare(config.Model{
		Dataset: config.Dataset{Source: images},
		Encoder: []config.Layer{{Layer: &layers.Dense{Units: 6, Activation: "sigmoid"}}},
		Train:   config.Train{Epochs: epochs, Batch: 8},
	})
	if err != nil {
		log.Fatal(err)
	}
	return model
}

// Charbonnier is the mean over pixels and batch of sqrt((output - target)² + epsilon²): it approximates the absolute error and
// is smooth at 0.
type Charbonnier struct {
	Epsilon float64 `toml:"epsilon" want:"> 0" doc:"smooths the corner at 0"`
}

func init() {
	losses.Registry.Register("charbonnier", "smooth absolute error, mean over pixels and batch", func() losses.Loss {
		return &Charbonnier{Epsilon: 0.01}
	})
}

// On implements [losses.Loss]: the default is the output.
func (*Charbonnier) On() string { return "output" }

// Reads implements [losses.Loss]: the term reads the value on, and the images.
func (*Charbonnier) Reads() losses.Reads { return losses.Reads{On: true, Against: losses.Images} }

// Build implements [losses.Loss]. Gorgonia differentiates the expression.
func (l *Charbonnier) Build(v losses.Values) (*gorgonia.Node, error) {
	var c ops.Chain
	output, images := c.Do("output", v.On), c.Do("images", v.Against)
	return c.Mean(c.Sqrt(c.Shift(c.Square(c.Sub(output, images)), l.Epsilon*l.Epsilon))), c.Err()
}

// A user-defined loss is a struct and its registration. After the registration, models.toml can declare the loss, and error
// messages and the list of losses contain it.
func Example_loss() {
	models, err := config.Load("models.toml", []byte(`
[model.robust]
encoder = [{ kind = "dense", units = 20, activation = "sigmoid" }]
loss    = [{ kind = "charbonnier", epsilon = 0.001 }]
train   = { epochs = 20, batch = 32 }
`))
	if err != nil {
		log.Fatal(err)
	}
	model, err := models.Model("robust")
	if err != nil {
		log.Fatal(err)
	}
	run, err := tessera.Train(context.Background(), model, tessera.Options{Out: filepath.Join(runs, "robust")})
	if err != nil {
		log.Fatal(err)
	}
	defer run.Close()
	set, err := new(data.Swimmer).Load(context.Background(), nil, data.Both)
	if err != nil {
		log.Fatal(err)
	}
	codes, err := run.Encode(set.Train.Float32())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(codes)/run.Units(), "codes")
	// Output: 256 codes
}

// The example factorises a matrix of which few entries are known, and predicts other entries.
func Example_matrix() {
	starts, columns, values := []int{0}, []int32(nil), []float32(nil)
	for i := range 20 { // row i rates most columns: 1, 3 or 5 for its taste, and half a point more in the last columns
		for j := range 8 {
			if (i+j)%5 == 0 {
				continue
			}
			columns, values = append(columns, int32(j)), append(values, float32(1+i%3*2)+0.5*float32(j/4))
		}
		starts = append(starts, len(columns))
	}
	images, err := data.NewEntries(starts, columns, values, 8)
	if err != nil {
		log.Fatal(err)
	}
	fit, err := (&classical.MatrixFactorisation{Components: 1, Solver: "als", Biases: true, RidgeRows: 1e-4, RidgeColumns: 1e-4, Iterations: 50}).New([]int{8}, 1)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := classical.Fit(context.Background(), fit, images, nil); err != nil {
		log.Fatal(err)
	}
	m := fit.(classical.MatrixPredictor)
	known, err := m.PredictEntry(1, 4) // which row 1 did not rate
	if err != nil {
		log.Fatal(err)
	}
	code, err := m.FoldIn([]int32{0, 7}, []float32{5, 5.5}) // a new row
	if err != nil {
		log.Fatal(err)
	}
	fresh, err := m.PredictCode(code, 2)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.1f %.1f\n", known, fresh)
	// Output: 3.5 5.0
}

// The example trains a model that predicts a column of a table, also from a column of texts, and predicts a new row.
func Example_table() {
	table := "size,rooms,town,price\n"
	for i := range 60 {
		size, rooms := 40+i, 1+i%5
		table += fmt.Sprintf("%d,%d,%s,%d\n", size, rooms, [2]string{"Ulm", "Bonn"}[i%2], 3*size+10*rooms+100*(i%2))
	}
	file := filepath.Join(runs, "homes.csv")
	if err := os.WriteFile(file, []byte(table), 0o600); err != nil {
		log.Fatal(err)
	}
	models, err := config.Load("models.toml", []byte(fmt.Sprintf(`
[model.homes]
dataset   = { file = %q, columns = { images = ["size", "rooms"], town = "town", target = "price" }, scale = "standardise" }
encoder   = [{ kind = "dense", units = 16, activation = "relu", from = ["images", "towns"] }]
decoder   = []
head      = { towns = { from = "town", layers = [{ kind = "embedding", vocabulary = 2, units = 1 }] }, price = { layers = [{ kind = "dense" }, { kind = "affine", factor = 60.0, offset = 300.0 }] } }
loss      = [{ kind = "mse", on = "price", against = "target" }]
optimizer = { kind = "adam", learning_rate = 0.01 }
train     = { epochs = 300, batch = 6 }
`, file)))
	if err != nil {
		log.Fatal(err)
	}
	model, err := models.Model("homes")
	if err != nil {
		log.Fatal(err)
	}
	run, err := tessera.Train(context.Background(), model, tessera.Options{Out: filepath.Join(runs, "homes")})
	if err != nil {
		log.Fatal(err)
	}
	defer run.Close()
	columns := map[string][]float32{"images": {75, 3}} // size and rooms, in the units of the file
	for _, c := range run.Columns("price") {           // all that the price is computed from
		if c.Name == "town" {
			columns["town"] = []float32{float32(slices.Index(c.Names, "Ulm"))}
		}
	}
	prices, err := run.ValueOf("price", columns)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("near 255:", math.Abs(float64(prices[0])-255) < 10)
	// Output: near 255: true
}
