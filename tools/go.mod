module tessera/tools

go 1.26.0

require (
	github.com/BurntSushi/toml v1.6.0
	github.com/mmcloughlin/avo v0.6.0
	golang.org/x/sys v0.49.0
	tessera v0.0.0
)

require (
	github.com/ebitengine/purego v0.11.3 // indirect
	golang.org/x/image v0.30.0 // indirect
	golang.org/x/mod v0.41.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/tools v0.51.0 // indirect
	gonum.org/v1/gonum v0.17.0 // indirect
)

replace tessera => ../
