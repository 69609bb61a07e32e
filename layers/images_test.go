package layers_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
)

// Errors of image layers name the inputs and settings that do not fit.
func TestImageLayersNameWhatDoesNotFit(t *testing.T) {
	for _, c := range []struct {
		layer string
		keys  map[string]any
		in    []int
		want  string
	}{
		{"conv2d", map[string]any{"filters": 2}, []int{12}, "want an image"},
		{"conv2d", map[string]any{"filters": 2, "kernel": 5, "padding": "valid"}, []int{4, 8, 1}, "kernel: a filter that spans 5 pixels does not fit into an image of 4 x 8"},
		{"conv2d", map[string]any{"filters": 2, "groups": 2}, []int{4, 4, 3}, "groups: 2 do not divide 3 channels and 2 filters"},
		{"conv2d_transpose", map[string]any{"filters": 2}, []int{12}, "want an image"},
		{"conv2d_transpose", map[string]any{"filters": 3, "groups": 2}, []int{4, 4, 4}, "groups: 2 do not divide 4 channels and 3 filters"},
		{"conv2d_transpose", map[string]any{"filters": 3, "padding": 3}, []int{4, 4}, "padding: cropping 3 pixels on every side leaves nothing of an image of 6 x 6"},
		{"conv2d_transpose", map[string]any{"filters": 3, "stride": math.MaxInt}, []int{4, 4}, "stride: "},
		{"conv2d", map[string]any{"filters": 3, "dilation": 1 << 62}, []int{4, 4}, "dilation: got 4611686018427387904, which spans more than 16777216 pixels on a side"},
		{"conv2d", map[string]any{"filters": 3, "kernel": math.MaxInt}, []int{4, 4}, "kernel: "},
		{"conv2d", map[string]any{"filters": 3, "kernel_width": 9, "padding": "valid"}, []int{4, 8}, "kernel: a filter that spans 3 x 9 pixels does not fit into an image of 4 x 8"},
		{"conv2d", map[string]any{"filters": 3, "kernel_width": math.MaxInt}, []int{4, 4}, "kernel_width: "},
		{"conv2d", map[string]any{"filters": 3, "stride_width": -1}, []int{4, 4}, "stride_width: got -1, want > 0"},
		{"conv2d", map[string]any{"filters": 3, "padding": math.MaxInt}, []int{4, 4}, "padding: "},
		{"conv2d_transpose", map[string]any{"filters": 3, "padding": math.MaxInt}, []int{4, 4}, "padding: "},
		{"conv2d_transpose", map[string]any{"filters": 3, "dilation": math.MaxInt}, []int{4, 4}, "dilation: "},
		{"max_pool", nil, []int{12}, "want an image"},
		{"max_pool", map[string]any{"kernel": 5}, []int{4, 8, 1}, "kernel: a window of 5 x 5 pixels does not fit into an image of 4 x 8"},
		{"max_pool", map[string]any{"kernel": 2, "padding": 2}, []int{4, 8, 1}, "padding: got 2, want less than the kernel's 2 pixels"},
		{"avg_pool", map[string]any{"kernel": math.MaxInt}, []int{4, 8}, "kernel: "},
		{"upsample", nil, []int{12}, "want an image"},
		{"upsample", map[string]any{"factor": 0}, []int{4, 4}, "factor: got 0, want > 0"},
		{"upsample", map[string]any{"factor": math.MaxInt}, []int{4, 4}, "factor: "},
		{"layer_norm", nil, []int{4, 4, 1}, "want more than one value on its last axis"},
		{"instance_norm", nil, []int{12}, "want an image"},
		{"instance_norm", nil, []int{1, 1, 8}, "want an image of more than one pixel"},
	} {
		l := fresh(t, c.layer, c.keys)()
		shape, err := l.OutputShape(c.in)
		expect.Error(t, err, c.want, c.layer, c.keys, c.in, "shape", shape, "and error")
	}
}

// Settings of any size give an error or a non-empty shape, never a panic.
func TestImageLayersHandleSettingsOfAnySize(t *testing.T) {
	sizes := []int{1, 2, 3, 1000, math.MaxInt32, math.MaxInt / 2, math.MaxInt}
	for layer, keys := range map[string][]string{
		"conv2d": {"kernel", "kernel_width", "stride", "stride_width", "dilation"}, "conv2d_transpose": {"kernel", "kernel_width", "stride", "stride_width", "dilation"},
		"max_pool": {"kernel", "stride"}, "upsample": {"factor"},
	} {
		for _, padding := range []any{"same", "valid", 1, math.MaxInt} {
			for _, key := range keys {
				for _, value := range sizes {
					set := map[string]any{key: value}
					if layer != "upsample" {
						set["padding"] = padding
					}
					if strings.HasPrefix(layer, "conv") {
						set["filters"] = 2
					}
					shape, err := fresh(t, layer, set)().OutputShape([]int{5, 7, 3})
					for _, d := range shape {
						if err == nil && d < 1 {
							t.Errorf("%s %v: got shape %v", layer, set, shape)
						}
					}
				}
			}
		}
	}
}

func TestPoolingsKeepTheRankOfTheirImages(t *testing.T) {
	for _, c := range []struct {
		layer   string
		in, out []int
	}{
		{"max_pool", []int{4, 6}, []int{2, 3}}, {"max_pool", []int{4, 6, 5}, []int{2, 3, 5}}, {"avg_pool", []int{5, 7, 1}, []int{2, 3, 1}},
		{"upsample", []int{4, 6}, []int{8, 12}}, {"upsample", []int{4, 6, 5}, []int{8, 12, 5}},
	} {
		got, err := fresh(t, c.layer, nil)().OutputShape(c.in)
		if err != nil || !slices.Equal(got, c.out) {
			t.Errorf("%s of %v: got %v, %v, want %v", c.layer, c.in, got, err, c.out)
		}
	}
}
