package cli

import "testing"

// What a file with an error must not hide, and what a name that is not that of a run means.
func TestNamesAreExplained(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", "[model.broken]\nencoder = [{ kind = \"dense\" }]\n[model.named]\nencoder = [{ kind = \"dense\", units = 2, name = \"trunk\" }]\n")
	got := b.must(0, "list", "nt_xent", "mse")
	b.contains("list", got.stdout, "nt_xent", "temperature")
	b.contains("list", got.stderr, "the models and sweeps of the file are left out, because it has errors")
	b.contains("list of an unknown part", b.must(2, "list", "word2vec", "-f", "shipped").stderr, `unknown "word2vec"`, "skip-gram")
	b.must(3, "list", "models")
	b.write("models.toml", "[model.named]\nencoder = [{ kind = \"dense\", units = 2, name = \"trunk\" }]\n")
	b.contains("summary", b.must(0, "summary", "named").stdout, "encoder.0 (trunk)")
	b.contains("eval of a model", b.must(2, "eval", "named").stderr, "named: is a model, not the folder of a run: `tessera train named` trains it in runs/named")
}

// The samples of a report have the names that they have in the file.
func TestSamplesOfAReportHaveTheirNames(t *testing.T) {
	b := newBench(t)
	b.write("birds.csv", "name,a,b\nowl,1,2\nwren,2,1\nrook,3,3\ntern,1,1\n")
	b.write("models.toml", "[model.birds]\ndataset = { file = \"birds.csv\", validation = 0 }\nencoder = [{ kind = \"dense\", units = 2 }]\ntrain.epochs = 2\n")
	b.must(0, "train", "birds")
	b.must(0, "report", "runs/birds", "-o", "r.html")
	b.contains("report", b.read("r.html"), `"called":{"0":"owl","1":"wren","2":"rook","3":"tern"}`)
}
