package cli

import "testing"

// What a file with an error must not hide, and what a name that is not that of a run means.
func TestNamesAreExplained(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", "[model.broken]\nencoder = [{ kind = \"dense\" }]\n[model.named]\nencoder = [{ kind = \"dense\", units = 2, name = \"trunk\" }]\n")
	got := b.must(0, "list", "nt_xent", "mse")
	b.contains("list", got.out, "nt_xent", "temperature")
	b.contains("list", got.err, "the models and sweeps of the file are left out, because it has errors")
	b.contains("list of an unknown part", b.must(2, "list", "glove", "-f", "shipped").err, `unknown "glove"`, "embedding looks up vectors")
	b.must(3, "list", "models")
	b.write("models.toml", "[model.named]\nencoder = [{ kind = \"dense\", units = 2, name = \"trunk\" }]\n")
	b.contains("summary", b.must(0, "summary", "named").out, "encoder.0 (trunk)")
	b.contains("eval of a model", b.must(2, "eval", "named").err, "named: is a model, not the folder of a run: `tessera train named` trains it in runs/named")
	b.must(0, "train", "named", "--epochs", "1", "--quiet")
	b.must(0, "encode", "runs/named", "--value", "trunk", "-o", "trunk.npy")
	b.must(0, "encode", "runs/named", "--value", "encoder.0", "-o", "path.npy")
	if b.read("trunk.npy") != b.read("path.npy") {
		t.Error("the value by the name differs from that by the path")
	}
}
