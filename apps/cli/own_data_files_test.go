package cli

import (
	"bytes"
	endian "encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"math/rand/v2"
	"strings"

	"tessera/internal/fatal"
	"tessera/internal/lists"
)

// ownData contains the expected values of user-defined data.
type ownData struct {
	species      []string
	measurements [][]float64
	activations  [][]float64
}

// species lists the classes of the measurements, in the order of their labels.
var species = []string{"adelie", "chinstrap", "gentoo"}

// writeOwnData writes the data files of the transcripts. Every call writes the same bytes.
func writeOwnData(b *bench) (o ownData) {
	b.Helper()
	r := rand.New(rand.NewPCG(12, 300))
	b.writePhotos(r)
	b.writeMeasurements(r, &o)
	o.activations = activations(r, 500)
	b.write("activations.npy", npyText("<f2", "(500, 64)", halves(o.activations, 1)))
	b.write("vector.npy", npyText("<f2", "(64,)", halves(o.activations[:1], 1)))
	b.write("large.npy", npyText("<f2", "(500, 64)", halves(o.activations, 1024)))
	values := make([]float32, 20*6*5)
	planes := make([]byte, 20*3*6*5)
	for i := range values {
		values[i] = float32(r.IntN(256))
	}
	for i := range planes {
		planes[i] = byte(r.IntN(256))
	}
	b.write("bytes.npy", npyText("<f4", "(20, 6, 5)", values))
	b.write("planes.npy", npyText("|u1", "(20, 3, 6, 5)", planes))
	return o
}

// writeMeasurements writes 200 signed vectors, whose columns have different scales, with a column of classes.
func (b *bench) writeMeasurements(r *rand.Rand, o *ownData) {
	var text strings.Builder
	text.WriteString("a,b,c,d,e,f,species\n")
	for i := range 200 {
		class := i * 7 % 3
		row := make([]float64, 6)
		for j := range row {
			row[j] = float64(float32(100*float64(j) + float64(1+j)*(r.NormFloat64()+3*float64((class+j)%3)))) // signed, of any scale
			if j%2 == 1 {
				row[j] = -row[j]
			}
			fmt.Fprintf(&text, "%v,", row[j])
		}
		fmt.Fprintln(&text, species[class])
		o.measurements, o.species = append(o.measurements, row), append(o.species, species[class])
	}
	b.write("measurements.csv", text.String())
	b.write("species/readme.md", "a folder that is called as a column is")
	b.write("unlabelled.csv", "a,b\n1,2\n3,4\n5,6\n7,8\n9,10\n-1,2\n3,-4\n5,-6\n7,-8\n9,-10\n")
}

// activations returns n sums of 8 atoms of 64 values, rounded to float16.
func activations(r *rand.Rand, n int) [][]float64 {
	rows := make([][]float64, n)
	atoms := lists.Of(8*64, func(int) float64 { return r.NormFloat64() })
	for i := range rows {
		row := make([]float64, 64)
		for k := range 8 {
			c := r.ExpFloat64()
			for j := range row {
				row[j] += c * atoms[k*64+j]
			}
		}
		for j := range row {
			row[j] = math.Round(row[j]*64) / 64 // a float16 below 32 in magnitude
			row[j] = min(max(row[j], -31), 31)
		}
		rows[i] = row
	}
	return rows
}

// writePhotos writes 300 JPEG and PNG files of different sizes into folders of classes, and two files that are not images.
func (b *bench) writePhotos(r *rand.Rand) {
	for i := range 300 {
		class, height, width := i%3, 16+r.IntN(24), 16+r.IntN(24)
		m := image.NewRGBA(image.Rect(0, 0, width, height))
		shade := color.RGBA{byte(100 + r.IntN(156)), byte(100 + r.IntN(156)), byte(r.IntN(100)), 255}
		for y := range height {
			for x := range width {
				dy, dx := math.Abs(float64(y)-float64(height)/2), math.Abs(float64(x)-float64(width)/2)
				inside := []bool{math.Hypot(dy, dx) < 7, max(dy, dx) < 6, dy < 3}[class]
				m.SetRGBA(x, y, color.RGBA{A: 255})
				if inside {
					m.SetRGBA(x, y, shade)
				}
			}
		}
		var out bytes.Buffer
		name, err := fmt.Sprintf("%s/c%03d.jpg", []string{"cells", "crystals", "fibres/2025/may"}[class], i), error(nil)
		if i%2 == 1 {
			name = strings.TrimSuffix(name, "jpg") + "png"
			err = png.Encode(&out, m)
		} else {
			err = jpeg.Encode(&out, m, nil)
		}
		fatal.If(b, err)
		b.write("photos/"+name, out.String())
		if i == 0 || i == 6 {
			b.write(fmt.Sprintf("jpegs/%d.jpg", i), out.String())
		}
	}
	b.write("photos/readme.md", "photos of one afternoon")
	b.write("photos/cells/notes.txt", "the lens was dirty")
}

// npyText returns an NPY file of the values.
func npyText(descr, shape string, values any) string {
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", descr, shape)
	var out bytes.Buffer
	out.WriteString("\x93NUMPY\x01\x00")
	_ = endian.Write(&out, endian.LittleEndian, uint16(len(header)))
	out.WriteString(header)
	_ = endian.Write(&out, endian.LittleEndian, values)
	return out.String()
}

// halves returns the rows, multiplied by a factor, as float16. The products must be float16 numbers.
func halves(rows [][]float64, factor float64) (values []uint16) {
	for _, row := range rows {
		for _, v := range row {
			v *= factor
			fraction, exponent := math.Frexp(math.Abs(v)) // v = fraction 2^exponent, fraction in [0.5,1)
			bits := uint16(0)
			if v != 0 {
				bits = uint16(exponent+14)<<10 | uint16(math.Round(fraction*2048))&0x3ff
			}
			if v < 0 {
				bits |= 1 << 15
			}
			values = append(values, bits)
		}
	}
	return values
}
