package checkpoint

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"tessera/internal/regular"
)

// mostHeader bounds the header that [ReadMetadata] reads: declarations and the states of hooks, far below it.
const mostHeader = 64 << 20

// ReadMetadata returns the metadata of a checkpoint and reads nothing else of it. It finds a damaged header and a file that is cut; it does
// not verify the checksum, as [Read] does. Errors: as Read.
func ReadMetadata(path string) (map[string]string, error) {
	f, err := regular.Open(path)
	if errors.Is(err, regular.ErrNot) {
		return nil, Errorf(path, "%v", regular.ErrNot)
	} else if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	defer f.Close()
	metadata, err := readMetadata(f)
	if err != nil {
		return nil, Errorf(path, "damaged: %v", err)
	}
	return metadata, nil
}

func readMetadata(f *os.File) (map[string]string, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var size [8]byte
	if _, err := io.ReadFull(f, size[:]); err != nil {
		return nil, fmt.Errorf("%d bytes are too few for a checkpoint", info.Size())
	}
	length := binary.LittleEndian.Uint64(size[:])
	if length > uint64(info.Size()-8) || length > mostHeader {
		return nil, fmt.Errorf("the header should have %d bytes, the whole file has %d", length, info.Size())
	}
	header := make([]byte, length)
	if _, err := io.ReadFull(f, header); err != nil {
		return nil, err
	}
	return metadataOf(header, info.Size()-8-int64(length))
}

// metadataOf returns the metadata of a header whose tensors take that many bytes.
func metadataOf(header []byte, bytes int64) (map[string]string, error) {
	var members map[string]json.RawMessage
	if err := strict(header, &members); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	var metadata map[string]string
	if err := json.Unmarshal(members[metadataKey], &metadata); err != nil {
		return nil, errors.New("header: it has no metadata")
	}
	delete(members, metadataKey)
	end := int64(0)
	for name, text := range members {
		var e entry
		if err := strict(text, &e); err != nil {
			return nil, fmt.Errorf("header: tensor %q: %w", name, err)
		}
		end = max(end, int64(e.Offsets[1]))
	}
	if end != bytes {
		return nil, fmt.Errorf("its tensors have %d bytes, the header describes %d", bytes, end)
	}
	return metadata, nil
}
