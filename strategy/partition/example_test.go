package partition_test

import (
	"context"
	"fmt"
	"log"

	"github.com/heedhq/heed/strategy/partition"
)

func Example() {
	ctx := context.Background()
	part, err := partition.New(ctx, partition.Config{Clusters: 2})
	if err != nil {
		log.Fatal(err)
	}
	var archive []string // texts that came before, without outcomes
	for i := range 10 {
		archive = append(archive, fmt.Sprint("When does order ", i, " arrive?"),
			fmt.Sprintf("func f%d(x []int) {\n\treturn x[%d]\n}", i, i))
	}
	if err := part.Fit(ctx, archive); err != nil {
		log.Fatal(err)
	}
	question, _, err := part.Item(ctx, "When does order 77 arrive?") // for strategy.Query.Item
	if err != nil {
		log.Fatal(err)
	}
	code, _, err := part.Item(ctx, "func g(x []int) {\n\treturn x[7]\n}")
	if err != nil {
		log.Fatal(err)
	}
	other, _, err := part.Item(ctx, "When does order 123 arrive?")
	fmt.Println(question != code, question == other, err)
	// Output: true true <nil>
}
