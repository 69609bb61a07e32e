package main

import (
	"maps"
	"strings"
	"testing"
)

const weight = `{"__metadata__":{"step":"1"},"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[2],"data_offsets":[8,10]}}`

// tensors returns the values that addTensors adds for a file.
func tensors(t *testing.T, header, data string) map[string]string {
	t.Helper()
	v := map[string]string{}
	if err := addTensors(v, "parameter", safetensors(header, data)); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTensorsDifferByNameTypeShapeAndBytes(t *testing.T) {
	const data = "0123456789"
	base := tensors(t, weight, data)
	if len(base) != 2 {
		t.Fatalf("got %v, want two tensors", base)
	}
	if got := tensors(t, strings.Replace(weight, `"1"`, `"2","more":"x"`, 1), data); !maps.Equal(got, base) {
		t.Errorf("metadata change %v to %v", base, got)
	}
	for old, new := range map[string]string{`"w"`: `"v"`, "F32": "I32", "[1,2]": "[2,1]"} {
		different, _ := compare(base, tensors(t, strings.Replace(weight, old, new, 1), data))
		if len(different) != 1 || different[0].key != "parameter w" {
			t.Errorf("%s to %s: got %v", old, new, different)
		}
	}
	for i := range data {
		changed := data[:i] + "x" + data[i+1:]
		if different, _ := compare(base, tensors(t, weight, changed)); len(different) != 1 {
			t.Errorf("byte %d: got %v", i, different)
		}
	}
}

func TestDamagedTensorsAreErrors(t *testing.T) {
	for name, file := range map[string][]byte{
		"empty":         nil,
		"long header":   append(safetensors("", ""), 0xff)[:8],
		"no JSON":       safetensors("{", ""),
		"no tensors":    safetensors(`{"__metadata__":{}}`, ""),
		"bytes outside": safetensors(weight, "012345678"),
		"backwards":     safetensors(`{"w":{"data_offsets":[2,1]}}`, "0123"),
		"wrong entry":   safetensors(`{"w":3}`, ""),
	} {
		if name == "long header" {
			file[0] = 1
		}
		if err := addTensors(map[string]string{}, "parameter", file); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestMetricsWithoutTimes(t *testing.T) {
	v := values{}
	err := addLines(v, "metrics", []byte(`{"epoch":1,"loss":0.10000000000000001,"val_mse":null,"seconds":3,"images_per_second":5}
{"epoch":2,"nested":{"a":[1,true]}}
`))
	want := values{"metrics lines": "2", "metrics line 1 epoch": "1", "metrics line 1 loss": "0.10000000000000001", "metrics line 1 val_mse": "null",
		"metrics line 2 epoch": "2", "metrics line 2 nested.a.length": "2", "metrics line 2 nested.a.0": "1", "metrics line 2 nested.a.1": "true"}
	if err != nil || !maps.Equal(v, want) {
		t.Errorf("got %v, %v; want %v", v, err, want)
	}
	if addLines(v, "metrics", []byte("{")) == nil {
		t.Error("half a line: no error")
	}
}

func TestTablesWithoutTrialsAndTimes(t *testing.T) {
	v := values{}
	err := addTable(v, "results.csv", []byte("trial,model,mse,seconds\nabc,shallow,0.5,3\ndef,\"a,b\",,4\n"))
	want := values{"results.csv rows": "2", "results.csv row 1 model": "shallow", "results.csv row 1 mse": "0.5",
		"results.csv row 2 model": "a,b", "results.csv row 2 mse": ""}
	if err != nil || !maps.Equal(v, want) {
		t.Errorf("got %v, %v; want %v", v, err, want)
	}
	for _, text := range []string{"", "a,b\n1\n"} {
		if addTable(v, "results.csv", []byte(text)) == nil {
			t.Errorf("%q: no error", text)
		}
	}
}
