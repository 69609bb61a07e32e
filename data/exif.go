package data

import (
	"bytes"
	"encoding/binary"
	"image"
)

// Cameras store a photo as the sensor saw it, and say how to turn it in the EXIF tag "orientation". Only this tag is needed,
// so it is read here: the libraries that read all of EXIF are large or no longer maintained.
//
// Source: Exif 2.32 (CIPA DC-008), 4.6.4: tag 0x0112 of the first directory, values 1 to 8.
const orientationTag = 0x0112

// orientation returns the EXIF orientation of a JPEG file from its first bytes; 1, upright, where it says none.
func orientation(b []byte) int {
	for at := 2; at+4 <= len(b) && b[at] == 0xff; {
		marker, size := b[at+1], int(binary.BigEndian.Uint16(b[at+2:]))
		if marker == 0xda || size < 2 || at+2+size > len(b) { // the image begins, or the header is cut
			return 1
		}
		segment := b[at+4 : at+2+size]
		if tiff, ok := bytes.CutPrefix(segment, []byte("Exif\x00\x00")); ok && marker == 0xe1 {
			return tiffOrientation(tiff)
		}
		at += 2 + size
	}
	return 1
}

// tiffOrientation reads the tag from the first directory of a TIFF header.
func tiffOrientation(b []byte) int {
	if len(b) < 8 {
		return 1
	}
	var order binary.ByteOrder = binary.LittleEndian
	if b[0] == 'M' {
		order = binary.BigEndian
	}
	at := int(order.Uint32(b[4:]))
	if at < 8 || at+2 > len(b) {
		return 1
	}
	n := int(order.Uint16(b[at:]))
	for i := range n {
		entry := at + 2 + 12*i
		if entry+12 > len(b) {
			return 1
		}
		if order.Uint16(b[entry:]) == orientationTag {
			if v := int(order.Uint16(b[entry+8:])); v >= 1 && v <= 8 {
				return v
			}
			return 1
		}
	}
	return 1
}

// upright returns an image turned by its orientation.
func upright(m image.Image, orientation int) image.Image {
	if orientation == 1 {
		return m
	}
	source := m.Bounds()
	size := source.Size()
	if orientation >= 5 { // rows become columns
		size.X, size.Y = size.Y, size.X
	}
	out := image.NewNRGBA(image.Rect(0, 0, size.X, size.Y))
	w, h := source.Dx()-1, source.Dy()-1
	for y := range size.Y {
		for x := range size.X {
			var fx, fy int
			switch orientation {
			case 2: // mirrored
				fx, fy = w-x, y
			case 3: // upside down
				fx, fy = w-x, h-y
			case 4: // upside down and mirrored
				fx, fy = x, h-y
			case 5: // turned left and mirrored
				fx, fy = y, x
			case 6: // to be turned right
				fx, fy = y, h-x
			case 7:
				fx, fy = w-y, h-x
			case 8: // to be turned left
				fx, fy = w-y, x
			}
			out.Set(x, y, m.At(source.Min.X+fx, source.Min.Y+fy))
		}
	}
	return out
}
