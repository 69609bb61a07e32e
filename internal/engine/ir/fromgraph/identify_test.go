package fromgraph_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/internal/engine/ir"
	"tessera/internal/engine/ir/fromgraph"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// The tables describe one version of Gorgonia. Before raising the constant, read what the new version changes.
func TestTheTablesAreOfThePinnedVersion(t *testing.T) {
	text, err := os.ReadFile("../../../../go.mod")
	fatal.If(t, err)
	expect.Contains(t, string(text), "gorgonia.org/gorgonia "+fromgraph.Version+"\n", "go.mod does not require")
}

// source parses Gorgonia's source files, except for tests and other build targets.
func source(t *testing.T) []*ast.File {
	t.Helper()
	folder, err := exec.Command("go", "list", "-f", "{{.Dir}}", "gorgonia.org/gorgonia").Output()
	fatal.If(t, err)
	names, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(folder)), "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no source: %v", err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || strings.Contains(name, "cuda") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		fatal.If(t, err)
		files = append(files, file)
	}
	return files
}

// texts returns the strings of the top-level array of the given name in Gorgonia's source.
func texts(t *testing.T, files []*ast.File, name string) (list []string) {
	t.Helper()
	for _, f := range files {
		for _, d := range f.Decls {
			general, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range general.Specs {
				v, ok := s.(*ast.ValueSpec)
				if !ok || v.Names[0].Name != name {
					continue
				}
				for _, e := range v.Values[0].(*ast.CompositeLit).Elts {
					text, err := strconv.Unquote(e.(*ast.BasicLit).Value)
					fatal.If(t, err)
					list = append(list, text)
				}
			}
		}
	}
	if len(list) == 0 {
		t.Fatalf("Gorgonia has no %s", name)
	}
	return list
}

// Every text that Gorgonia can print for an elementwise function or a product has an identity, and different texts have
// different ones.
func TestEveryTextOfGorgoniaIsKnown(t *testing.T) {
	files := source(t)
	known := map[string]ir.Primitive{}
	for _, name := range []string{"ʘUnaryOpStrs", "ʘBinOpStrs"} {
		for _, text := range texts(t, files, name) {
			f, ok := fromgraph.Functions()[text]
			if !ok {
				t.Errorf("%s: %q is not known", name, text)
			}
			for other, g := range known {
				if f == g {
					t.Errorf("%q and %q are one function", text, other)
				}
			}
			known[text] = f
		}
	}
	for text := range fromgraph.Functions() {
		if _, ok := known[text]; !ok {
			t.Errorf("Gorgonia prints %q for nothing", text)
		}
	}
	signs := map[string]bool{}
	for _, text := range fromgraph.Products() {
		signs[strings.Fields(text)[1]] = true
	}
	printed := map[string]bool{}
	for _, sign := range texts(t, files, "āBinOpStrs") {
		printed[sign] = true
	}
	if !maps.Equal(signs, printed) {
		t.Errorf("the signs of products are %v, Gorgonia's %v", signs, printed)
	}
}

// foreign lists Gorgonia's ops without a counterpart in package ir. They run by their own Do method.
var foreign = []string{
	"BatchNormOp", "GroupNormOp", "Iop", "atOp", "avgPoolDiffOp", "avgPoolOp", "byIndicesOp", "byIndicesOpDiffOp",
	"clampOp", "col2imOp", "concatOp", "ctcLossDiffOp", "ctcLossOp", "devTrans", "diagFlatOp", "dropoutDiffOp", "dropoutOp", "dtConvOp",
	"globalAveragePoolOp", "groupNormDiffOp", "im2colOp", "letOp", "maxPoolDiffOp", "maxPoolOp", "randomOp", "readOp", "sliceIncrOp", "sliceOp",
	"softmaxDiffOp", "softmaxOp", "sparsemaxDiffOp", "sparsemaxOp", "tensordotOp", "upsampleOp", "yoloOp",
}

// Every type in Gorgonia that is an op, and does not embed another op, is in the tables or in the list of foreign ops.
func TestEveryOpOfGorgoniaIsKnownOrForeign(t *testing.T) {
	ops := map[string]bool{}
	for _, f := range source(t) {
		for _, d := range f.Decls {
			method, ok := d.(*ast.FuncDecl)
			if !ok || method.Recv == nil || method.Name.Name != "OverwritesInput" {
				continue
			}
			receiver := method.Recv.List[0].Type
			if star, ok := receiver.(*ast.StarExpr); ok {
				receiver = star.X
			}
			ops[receiver.(*ast.Ident).Name] = true
		}
	}
	if len(ops) < 30 {
		t.Fatalf("found %d ops only", len(ops))
	}
	for _, name := range slices.Sorted(maps.Keys(ops)) {
		known := slices.Contains(fromgraph.Types(), "gorgonia."+name)
		if listed := slices.Contains(foreign, name); known == listed {
			t.Errorf("%s: in the tables %v, on the list of foreign ops %v", name, known, listed)
		}
	}
	for _, name := range slices.Concat(foreign, fromgraph.Types()) {
		if !ops[strings.TrimPrefix(name, "gorgonia.")] {
			t.Errorf("Gorgonia has no op %s", name)
		}
	}
}

func matrix(g *G.ExprGraph, name string, shape ...int) *G.Node {
	return G.NewTensor(g, tensor.Float64, len(shape), G.WithShape(shape...), G.WithName(name))
}

// gradients returns the derivatives of the sum of the squares of y with respect to wrt.
func gradients(t *testing.T, y *G.Node, wrt ...*G.Node) G.Nodes {
	t.Helper()
	grads, err := G.Grad(G.Must(G.Sum(G.Must(G.Square(y)))), wrt...)
	fatal.If(t, err)
	return grads
}

// Each of Gorgonia's functions that adds an op produces what the tables say, and so do its derivatives.
func TestWhatGorgoniasFunctionsMakeIsIdentified(t *testing.T) {
	g := G.NewGraph()
	x, v, w := matrix(g, "x", 6, 5), matrix(g, "v", 6, 5), matrix(g, "w", 5, 4)
	vector, other := matrix(g, "vector", 5), matrix(g, "other", 5)
	a, b := matrix(g, "a", 2, 3, 4), matrix(g, "b", 2, 4, 5)
	p := func(f ir.Primitive) fromgraph.Identity {
		return fromgraph.Identity{Class: fromgraph.Pointwise, F: f}
	}
	mul := G.Must(G.Mul(x, w))
	slopes := gradients(t, mul, x, w)
	batched := G.Must(G.BatchedMatMul(a, b))
	batchedSlopes := gradients(t, batched, a, b)
	matVec := G.Must(G.Mul(x, vector))
	for _, c := range []struct {
		node *G.Node
		want fromgraph.Identity
	}{
		{G.Must(G.Abs(x)), p(ir.Abs)}, {G.Must(G.Sign(x)), p(ir.Sign)}, {G.Must(G.Ceil(x)), p(ir.Ceil)}, {G.Must(G.Floor(x)), p(ir.Floor)},
		{G.Must(G.Sin(x)), p(ir.Sin)}, {G.Must(G.Cos(x)), p(ir.Cos)}, {G.Must(G.Exp(x)), p(ir.Exp)}, {G.Must(G.Log(x)), p(ir.Log)},
		{G.Must(G.Log2(x)), p(ir.Log2)}, {G.Must(G.Neg(x)), p(ir.Neg)}, {G.Must(G.Square(x)), p(ir.Square)}, {G.Must(G.Sqrt(x)), p(ir.Sqrt)},
		{G.Must(G.Inverse(x)), p(ir.Reciprocal)}, {G.Must(G.InverseSqrt(x)), p(ir.InvSqrt)}, {G.Must(G.Cube(x)), p(ir.Cube)},
		{G.Must(G.Tanh(x)), p(ir.Tanh)}, {G.Must(G.Sigmoid(x)), p(ir.Sigmoid)}, {G.Must(G.Log1p(x)), p(ir.Log1p)},
		{G.Must(G.Expm1(x)), p(ir.Expm1)}, {G.Must(G.Softplus(x)), p(ir.Softplus)},
		{G.Must(G.Add(x, v)), p(ir.Add)}, {G.Must(G.Sub(x, v)), p(ir.Sub)}, {G.Must(G.HadamardProd(x, v)), p(ir.Mul)},
		{G.Must(G.HadamardDiv(x, v)), p(ir.Div)}, {G.Must(G.Pow(x, v)), p(ir.Pow)},
		{G.Must(G.Lt(x, v, true)), p(ir.Lt)}, {G.Must(G.Gt(x, v, false)), p(ir.Gt)}, {G.Must(G.Lte(x, v, true)), p(ir.Lte)},
		{G.Must(G.Gte(x, v, false)), p(ir.Gte)}, {G.Must(G.Eq(x, v, true)), p(ir.Eq)}, {G.Must(G.Ne(x, v, true)), p(ir.Ne)},
		{G.Must(G.MaxBetween(x, v)), p(ir.Maximum)}, {G.Must(G.MinBetween(x, v)), p(ir.Minimum)},
		{mul, fromgraph.Identity{Class: fromgraph.MatMul}},
		{slopes[0], fromgraph.Identity{Class: fromgraph.MatMul, TransB: true}},
		{slopes[1], fromgraph.Identity{Class: fromgraph.MatMul, TransA: true}},
		{batched, fromgraph.Identity{Class: fromgraph.MatMul, Batched: true}},
		{batchedSlopes[0], fromgraph.Identity{Class: fromgraph.MatMul, Batched: true, TransB: true}},
		{batchedSlopes[1], fromgraph.Identity{Class: fromgraph.MatMul, Batched: true, TransA: true}},
		{matVec, fromgraph.Identity{Class: fromgraph.MatVec}},
		{gradients(t, matVec, vector)[0], fromgraph.Identity{Class: fromgraph.MatVec, TransA: true}},
		{G.Must(G.OuterProd(vector, other)), fromgraph.Identity{Class: fromgraph.Outer}},
		{G.Must(G.Mul(vector, other)), fromgraph.Identity{Class: fromgraph.Dot}},
		{G.Must(G.Sum(a, 0, 2)), fromgraph.Identity{Class: fromgraph.Reduction, Axes: []int{0, 2}}},
		{G.Must(G.Max(a, 1)), fromgraph.Identity{Class: fromgraph.Reduction, Reducer: ir.Max, Axes: []int{1}}},
		{G.Must(G.Reshape(x, tensor.Shape{30})), fromgraph.Identity{Class: fromgraph.Reshape}},
		{G.Must(G.SizeOf(1, x)), fromgraph.Identity{Class: fromgraph.Size, Size: 5}},
		{G.Must(G.Transpose(a, 2, 0, 1)), fromgraph.Identity{Class: fromgraph.Transpose, Axes: []int{2, 0, 1}}},
		{gradients(t, G.Must(G.Sum(x, 0)), x)[0], fromgraph.Identity{Class: fromgraph.Repeat}},
		{G.NewConstant(3.0), fromgraph.Identity{Class: fromgraph.Constant}},
		{G.Must(G.SoftMax(x)), fromgraph.Identity{}},
		{x, fromgraph.Identity{}},
	} {
		expect.Equal(t, fmt.Sprintf("%+v", fromgraph.Identify(c.node.Op())), fmt.Sprintf("%+v", c.want), c.node.Op(), c.want)
	}
}
