package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// notResults lists keys of metrics and columns of tables whose values may differ between equal trainings: times, the names of
// trials, which are hashes of all settings including new ones, and checksums of these.
var notResults = []string{"seconds", "images_per_second", "trial", "crc32", "sha256"}

// flatten adds every leaf of a decoded JSON or TOML value under its path, and the length of every array.
func flatten(into map[string]string, path string, value any) {
	below := func(key string) string {
		if path == "" {
			return key
		}
		return path + "." + key
	}
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			flatten(into, below(key), child)
		}
	case []map[string]any:
		into[below("length")] = strconv.Itoa(len(v))
		for i, child := range v {
			flatten(into, below(strconv.Itoa(i)), child)
		}
	case []any:
		into[below("length")] = strconv.Itoa(len(v))
		for i, child := range v {
			flatten(into, below(strconv.Itoa(i)), child)
		}
	case float64:
		into[path] = strconv.FormatFloat(v, 'g', -1, 64)
	case nil:
		into[path] = "null"
	default:
		into[path] = fmt.Sprint(v)
	}
}

// addJSON adds the results of a JSON object, with a prefix before each key.
func addJSON(into map[string]string, prefix string, text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // keeps every digit
	var object map[string]any
	if err := d.Decode(&object); err != nil {
		return fmt.Errorf("%s: %w", prefix, err)
	}
	for key, value := range object {
		if !slices.Contains(notResults, key) {
			flatten(into, prefix+" "+key, value)
		}
	}
	return nil
}

// addLines adds the results of a file with one JSON object per line.
func addLines(into map[string]string, prefix string, text []byte) error {
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	count := 0
	for lines.Scan() {
		count++
		if err := addJSON(into, fmt.Sprintf("%s line %d", prefix, count), lines.Bytes()); err != nil {
			return err
		}
	}
	into[prefix+" lines"] = strconv.Itoa(count)
	return lines.Err()
}

// addTable adds the cells of a CSV file with a header.
func addTable(into map[string]string, prefix string, text []byte) error {
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		return fmt.Errorf("%s: %w", prefix, err)
	}
	if len(rows) == 0 {
		return fmt.Errorf("%s: no header", prefix)
	}
	into[prefix+" rows"] = strconv.Itoa(len(rows) - 1)
	for i, row := range rows[1:] {
		for j, cell := range row {
			if column := rows[0][j]; !slices.Contains(notResults, column) {
				into[fmt.Sprintf("%s row %d %s", prefix, i+1, column)] = cell
			}
		}
	}
	return nil
}
