module penstock.dev/compat/registry-go

go 1.21

require (
	github.com/linkedin/goavro/v2 v2.12.0
	github.com/twmb/franz-go/pkg/sr v1.0.1
)

require github.com/golang/snappy v0.0.1 // indirect
