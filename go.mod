module github.com/heedhq/heed

go 1.25
