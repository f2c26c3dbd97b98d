module github.com/heedhq/heed/examples/langchaingo

go 1.25.0

require (
	github.com/heedhq/heed v0.0.0
	github.com/tmc/langchaingo v0.1.14
)

require (
	github.com/dlclark/regexp2 v1.10.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/pkoukk/tiktoken-go v0.1.6 // indirect
	gonum.org/v1/gonum v0.17.0 // indirect
)

replace github.com/heedhq/heed => ../..
