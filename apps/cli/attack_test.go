package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"tessera/attack"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

func TestAttackMeasuresEveryMethodNormAndEpsilon(t *testing.T) {
	b := newBench(t)
	b.trained("runs/small", 30)
	args := []string{"attack", "runs/small", "--epsilon", "0.05,0.2", "--steps", "5", "--limit", "40"}
	text := b.must(0, append(args, "--json")...).stdout
	expect.Equal(t, b.must(0, append(args, "--json")...).stdout, text, "a second attack measures something else")
	var r attack.Report
	fatal.If(t, json.Unmarshal([]byte(text), &r))
	if r.Model != "small" || r.Dataset != "swimmer" || r.Images != 40 || len(r.Attacks) != 8 {
		t.Fatalf("got %s", text)
	}
	for i, a := range r.Attacks {
		if method := []string{"fgsm", "pgd"}[i%2]; a.Method != method || a.Norm != []attack.Norm{attack.LInf, attack.L2}[i/4] ||
			a.Epsilon != []float64{0.05, 0.2}[i/2%2] {
			t.Errorf("attack %d is %+v", i, a)
		}
		if !(a.MSE > r.MSE && a.CodeChange > 0) {
			t.Errorf("%+v does nothing: clean mse %v", a, r.MSE)
		}
	}
	b.contains("report --attack", b.must(0, "report", "runs/small", "--attack", "linf", "-o", "s.html").stderr, "nothing was attacked: small has no head that a loss compares with labels")
	table := strings.Split(strings.TrimSpace(b.must(0, args...).stdout), "\n")
	if len(table) < 10 || !strings.HasPrefix(table[0], "norm") || !strings.HasPrefix(table[1], "clean") || !slices.Equal(strings.Fields(table[9])[:5], []string{"l2", "0.2", "pgd", "steps", "5"}) {
		t.Errorf("got\n%s", strings.Join(table, "\n"))
	}
}

func TestAttackSaysWhatIsWrong(t *testing.T) {
	b := newBench(t)
	b.trained("runs/small", 1)
	b.must(0, "train", "small", "--epochs", "1", "--out", "runs/attacked", "--set", "hook.adversarial.epsilon=0.1", "--set", "hook.adversarial.steps=2")
	b.shipped()
	b.must(0, "train", "pca", "--set", "dataset=swimmer", "--set", "components=3")
	b.contains("report of a baseline", b.must(0, "report", "runs/pca", "--attack", "linf", "-o", "p.html").stderr, `nothing was attacked: pca is a baseline (kind "pca"), which has no gradients`)
	b.contains("report of a baseline", b.read("p.html"), "<code>tessera train pca -f config.toml</code>")
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{2, "--steps: only pgd has it; leave it out, or add --attack pgd", []string{"runs/small", "--method", "fgsm", "--steps", "5"}},
		{2, "--step-size: only pgd has it", []string{"runs/small", "--method", "fgsm", "--step-size", "0.1"}},
		{2, "--set restarts: only pgd has it", []string{"runs/small", "--attack", "fgsm", "--set", "restarts=2"}},
		{2, "--set steps: got 0, want an integer in [1,1000]", []string{"runs/small", "--set", "steps=0"}},
		{2, `--set: unknown key "step": did you mean "steps"?`, []string{"runs/small", "--set", "step=3"}},
		{2, "--set: got \"steps\", want KEY=VALUE", []string{"runs/small", "--set", "steps"}},
		{2, "--attack: got \"pdg\", want one of", []string{"runs/small", "--attack", "pdg"}},
		{2, "--attack: square attacks predictions of classes, not reconstructions", []string{"runs/small", "--attack", "square", "--norm", "linf"}},
		{2, "it has no gradients", []string{"runs/pca"}},
		{2, "runs/none", []string{"runs/none"}},
	} {
		expect.Contains(t, b.must(c.code, append([]string{"attack"}, c.args...)...).stderr, c.want, c.args)
	}
	b.must(0, "attack", "runs/attacked", "--limit", "3", "--method", "fgsm,pgd", "--steps", "5")
	expect.Contains(t, spaced(b.must(0, "summary", "shallow-adversarial").stdout), "hook adversarial ")
}

func TestAttacksOnAHeadMeasureRobustAccuracy(t *testing.T) {
	b := newBench(t)
	b.flowers()
	b.must(0, "train", "flowers")
	b.must(0, "train", "flowers", "--epochs", "2", "--out", "runs/other")
	args := []string{"attack", "runs/flowers", "--on", "class", "--epsilon", "0.5,3", "--objective", "cross_entropy,margin", "--steps", "5", "--restarts", "1", "--method", "pgd"}
	var j attack.Judgement
	fatal.If(t, json.Unmarshal([]byte(b.must(0, append(args, "--json")...).stdout), &j))
	if j.Model != "flowers" || j.Head != "class" || len(j.Trials) != 8 || j.Accuracy.Value < 0.9 || j.From != "" {
		t.Fatalf("got %+v", j)
	}
	for i, r := range j.Trials {
		if r.Norm != []attack.Norm{attack.LInf, attack.L2}[i/4] || r.Epsilon != []float64{0.5, 3}[i/2%2] || r.Objective != []attack.Objective{attack.CrossEntropy, attack.Margin}[i%2] {
			t.Errorf("trial %d is %+v", i, r)
		}
		if !(r.Risk > j.Risk && r.Largest <= r.Epsilon && r.Accuracy.Value <= j.Accuracy.Value) {
			t.Errorf("trial %d is %+v, clean %+v", i, r, j.Accuracy)
		}
	}
	text := b.must(0, append(args, "--from", "runs/other")...).stdout
	b.contains("attack --from", text, "norm ", "epsilon", "attack", "objective", "clean", "95 % interval", "examples computed on runs/other")

	b.must(0, "figure", "robustness", "runs/flowers", "runs/other", "--norm", "linf", "--epsilon", "3,0.5", "--steps", "5", "--limit", "20", "-o", "r.svg")
	b.contains("figure robustness", b.read("r.svg"), "flowers", "other", "(a) linf: pgd, 5 steps, 6 images", "epsilon", "accuracy (bars: 95 % interval)")
	b.must(0, "figure", "gradients", "runs/flowers", "runs/other", "--images", "0,1", "-o", "g.svg")
	b.contains("figure gradients", b.read("g.svg"), "flowers: gradients of the cross entropy; accuracy ", "other: gradients of the cross entropy; accuracy ", "flower 1")
	b.must(0, "report", "runs/flowers", "--attack", "l2", "--epsilon", "0.5,3", "-o", "r.html")
	b.contains("report --attack", b.read("r.html"), "Head class under attack", ">fgsm</td>", ">pgd</td>", "score, first ", "<h2>Classes</h2>",
		"<code>tessera report runs/flowers --attack l2 --epsilon 0.5,3 -o report.html</code>")
	chosen := []string{"--metrics", "robust_accuracy", "--with", "epsilon=3", "--with", "steps=5"}
	eval := append([]string{"eval", "runs/flowers", "--json"}, chosen...)
	expect.Equal(t, b.must(0, eval...).stdout, b.must(0, eval...).stdout, "the metric differs when it is measured again")
	b.contains("compare", b.must(0, append([]string{"compare", "runs/flowers", "runs/other"}, chosen...)...).stdout, "robust_accuracy")
	for args, want := range map[string]string{
		"figure robustness runs/flowers --epsilon 1":               "--epsilon: radii are of one norm; add --norm linf or --norm l2",
		"figure atoms runs/flowers --steps 3":                      "figure atoms: only robustness has --steps",
		"report runs/flowers --epsilon 3":                          "--epsilon: needs --attack",
		"eval runs/flowers --metrics robustness --with norm=l7":    "--with: norm: got \"l7\", want one of",
		"eval runs/flowers --metrics accuracy --with epsilon=0.1":  "none of the selected metrics has a setting \"epsilon\"",
		"compare runs/flowers runs/other --metrics mse --with x=1": "none of the selected metrics has a setting \"x\"",
	} {
		b.contains(args, b.must(exitUsage, strings.Fields(args)...).stderr, want)
	}
}

func TestBlackBoxesShowTheirQueries(t *testing.T) {
	b := newBench(t)
	b.flowers()
	b.must(0, "train", "flowers")
	text := b.must(0, "attack", "runs/flowers", "--on", "class", "--norm", "linf", "--epsilon", "3", "--method", "pgd,square,score,decision", "--steps", "5",
		"--queries", "60", "--estimator", "coordinates", "--limit", "10").stdout
	b.contains("attack by queries", text, "cross_entropy", "estimator coordinates, queries 60", "square linf 3, accuracy after queries:  1: ", "  50: ", "  60: ")
	b.contains("--queries with pgd", b.must(exitUsage, "attack", "runs/flowers", "--on", "class", "--method", "pgd", "--queries", "5").stderr, "--queries: only decision, score, square has it")
	b.contains("--queries without --on", b.must(exitUsage, "attack", "runs/flowers", "--queries", "5").stderr, "--queries: only decision, score, square has it")
	b.contains("--method without --on", b.must(exitUsage, "attack", "runs/flowers", "--method", "square").stderr, "square needs images of at least 5 x 5 pixels")
	b.contains("--estimator", b.must(exitUsage, "attack", "runs/flowers", "--on", "class", "--method", "score", "--estimator", "guess").stderr, `--estimator: got "guess", want one of`)
}
