module github.com/heedhq/heed/scorecard

go 1.25.0

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/heedhq/heed v0.0.0
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/google/uuid v1.6.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	gonum.org/v1/gonum v0.17.0 // indirect
)

replace github.com/heedhq/heed => ..
