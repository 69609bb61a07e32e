package serve

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// Numbers that lie close together compared with their size are scaled in float64: the codes of JSON and of FP64 data differ by as much as
// the samples do, and are equal.
func TestNumbersOfRequestsAreSubtractedBeforeTheyAreRounded(t *testing.T) {
	dir := t.TempDir()
	text := "northing,easting\n"
	for i := range 60 {
		text += fmt.Sprintf("%v,%v\n", 5_400_000+4*math.Mod(float64(i)*0.6180339887, 1), 380_000+3*math.Mod(float64(i)*0.4142135623, 1))
	}
	file := filepath.Join(dir, "survey.csv")
	fatal.If(t, os.WriteFile(file, []byte(text), 0o600))
	run := filepath.Join(dir, "run")
	trainRun(t, run, fmt.Sprintf("[model.m]\nkind = \"pca\"\ncomponents = 2\ndataset = { name = \"csv\", file = %q, scale = \"standardise\" }", file))
	s, err := New([]Model{{Folder: run}}, Options{Workers: 1})
	fatal.If(t, err)
	defer s.Close()
	samples := []float64{5_400_001.25, 380_001.5, 5_400_001.3, 380_001.5}
	body := fmt.Sprintf(`{"inputs":[{"name":"input","shape":[2,2],"datatype":"FP64","data":%s}],"outputs":[{"name":"code"}]}`, "[5400001.25,380001.5,5400001.3,380001.5]")
	fromText := post(s, "/v2/models/run/infer", []byte(body)).reply(t).Outputs[0].Data
	head := `{"inputs":[{"name":"input","shape":[2,2],"datatype":"FP64","parameters":{"binary_data_size":32}}],"outputs":[{"name":"code"}]}`
	binaryBody := []byte(head)
	for _, v := range samples {
		binaryBody = binary.LittleEndian.AppendUint64(binaryBody, math.Float64bits(v))
	}
	fromBytes := post(s, "/v2/models/run/infer", binaryBody, headerLength+": "+itoa(len(head))).reply(t).Outputs[0].Data
	expect.Equal(t, fmt.Sprint(fromText), fmt.Sprint(fromBytes), "from JSON")
	// 5 cm of northing are 0.05 divided by its deviation of about 1.17: float32 has steps of 50 cm there.
	if d := math.Hypot(float64(fromText[2]-fromText[0]), float64(fromText[3]-fromText[1])); d < 0.03 || d > 0.06 {
		t.Errorf("samples 5 cm apart have codes %v apart, want 0.03 to 0.06", d)
	}
}
