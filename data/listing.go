package data

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// listing is the image files of a folder.
type listing struct {
	paths   []string
	labels  []int    // one per file, nil without classes
	classes []string // the folders of the first level that hold images
	skipped []string // files that are no images, and folders, relative
}

// deepest bounds nested folders.
const deepest = 64

// list lists the image files of a folder in the order of their names. Where the folder has only sub-folders, each of them is a
// class, and all images below it, at any depth, are of that class; labels count the classes by name. Hidden files are left out,
// other files are skipped and listed.
func (p pictures) list(folder string) (listing, error) {
	var l listing
	files, folders, err := p.entries(&l, folder, "")
	if err != nil {
		return l, err
	}
	if len(files) > 0 {
		l.paths = files
		return l, p.mixed(&l, folder, files[0], folders)
	}
	for _, name := range folders {
		below, err := p.below(&l, folder, name, 1)
		if err != nil {
			return l, err
		}
		if len(below) == 0 && !p.flat {
			continue
		}
		l.labels = append(l.labels, slices.Repeat([]int{len(l.classes)}, len(below))...)
		l.classes = append(l.classes, name)
		l.paths = append(l.paths, below...)
	}
	if len(l.paths) == 0 {
		return l, p.none(folder)
	}
	return l, nil
}

// mixed handles images beside folders. Data sets of one format have always left the folders out; the others refuse them, because
// a forgotten file would hide all classes.
func (p pictures) mixed(l *listing, folder, file string, folders []string) error {
	for _, name := range folders {
		if p.flat {
			l.skipped = append(l.skipped, name+"/")
			continue
		}
		below, err := p.below(&listing{}, folder, name, 1)
		if err != nil {
			return err
		}
		if len(below) > 0 {
			return &Error{Path: folder, Problem: fmt.Sprintf("has images (%s) beside folders of images (%s)", filepath.Base(file), name),
				Hint: "move every image into the folder of its class, or all of them into one folder"}
		}
	}
	return nil
}

// none is the error of a folder without images.
func (p pictures) none(folder string) error {
	if p.only == "" {
		return &Error{Path: folder, Problem: "there are no PNG, JPEG, GIF or BMP images in this folder or its sub-folders"}
	}
	e := &Error{Path: folder, Problem: "there are no " + p.only + " files in this folder or its sub-folders"}
	if other, err := (pictures{}).list(folder); err == nil {
		e.Hint = fmt.Sprintf(`write name = "images" in the dataset table to read the %d images of other formats, such as %s`, len(other.paths), filepath.Base(other.paths[0]))
	}
	return e
}

// below returns the images of a folder and, unless the listing is flat, of all folders below it.
func (p pictures) below(l *listing, folder, name string, depth int) ([]string, error) {
	files, folders, err := p.entries(l, filepath.Join(folder, name), name)
	if err != nil {
		return nil, err
	}
	if depth == deepest && len(folders) > 0 {
		return nil, &Error{Path: filepath.Join(folder, name), Problem: fmt.Sprintf("folders are nested more than %d deep; is one of them a link to a folder that contains it?", deepest)}
	}
	for _, sub := range folders {
		if p.flat {
			l.skipped = append(l.skipped, filepath.ToSlash(filepath.Join(name, sub))+"/")
			continue
		}
		more, err := p.below(l, folder, filepath.Join(name, sub), depth+1)
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	return files, nil
}

// entries returns the image files and the sub-folders of a folder, both sorted by name, hidden ones left out.
func (p pictures) entries(l *listing, folder, name string) (files, folders []string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, nil, badFile("", folder, err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		path := filepath.Join(folder, e.Name())
		switch info, err := os.Stat(path); { // follows links, which DirEntry does not
		case errors.Is(err, os.ErrNotExist):
			return nil, nil, &Error{Path: path, Problem: "is a broken link", Hint: "remove it, or restore its target"}
		case err != nil:
			return nil, nil, badFile("", path, err)
		case info.IsDir():
			folders = append(folders, e.Name())
		case p.reads(path):
			files = append(files, path)
		default:
			l.skipped = append(l.skipped, filepath.ToSlash(filepath.Join(name, e.Name())))
		}
	}
	return files, folders, nil
}

// reads reports whether a file has the extension of an image that is read.
func (p pictures) reads(path string) bool {
	extension := strings.ToLower(filepath.Ext(path))
	if p.only != "" {
		return extension == p.only
	}
	return slices.ContainsFunc(imageFormats, func(f imageFormat) bool { return slices.Contains(f.extensions, extension) })
}

// countBy makes the labels of the images of a folder those of the classes of the training images. An unknown class is an error.
// Without classes nothing changes.
func (l *listing) countBy(classes []string, folder string) error {
	if len(l.classes) == 0 {
		return nil
	}
	if slices.ContainsFunc(l.classes, func(name string) bool { return !slices.Contains(classes, name) }) {
		return &Error{Path: folder, Problem: fmt.Sprintf("the class folders differ from those of the training images (got %q, want %q)",
			strings.Join(l.classes, " "), strings.Join(classes, " ")), Hint: "rename the other folders, or leave them out"}
	}
	for i, label := range l.labels {
		l.labels[i] = slices.Index(classes, l.classes[label])
	}
	l.classes = classes
	return nil
}

// notes says which files were skipped, and what looks like a wrong folder.
func (p pictures) notes(folder string, l listing) (notes []string) {
	const most = 5
	if n := len(l.skipped); n > 0 {
		shown := inLine(strings.Join(l.skipped[:min(n, most)], ", "))
		if n > most {
			shown += fmt.Sprintf(" and %d others", n-most)
		}
		what, images := "no PNG, JPEG, GIF or BMP images", ""
		if p.only != "" {
			what = "not read: only " + p.only + " files of class folders are"
			if slices.ContainsFunc(l.skipped, (pictures{}).reads) {
				images = `; name = "images" reads images of other formats`
			}
		}
		notes = append(notes, fmt.Sprintf("%s: skipped %d of %d files, %s: %s%s", folder, n, n+len(l.paths), what, shown, images))
	}
	splits := []string{"train", "training", "test", "testing", "val", "valid", "validation"}
	if len(l.classes) > 1 && !slices.ContainsFunc(l.classes, func(c string) bool { return !slices.Contains(splits, strings.ToLower(c)) }) {
		notes = append(notes, fmt.Sprintf("%s: the classes are %s: to use these folders as splits, name each with images and test_images", folder, strings.Join(l.classes, ", ")))
	}
	return notes
}
