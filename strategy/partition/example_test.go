package partition_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy/partition"
)

func Example() {
	ctx := context.Background()
	part, err := partition.New(ctx, partition.Config{Store: &memstore.Store{}, Clusters: 2})
	if err != nil {
		log.Fatal(err)
	}
	item := func(text string) string { // for strategy.Query.Item
		item, _, err := part.Item(ctx, text)
		if err != nil {
			log.Fatal(err)
		}
		return item
	}
	for i := range 20 { // texts that came before, without outcomes
		item(fmt.Sprint("When does order ", i, " arrive?"))
		item(fmt.Sprintf("func f%d(x []int) {\n\treturn x[%d]\n}", i, i))
	}
	if err := part.Sweep(ctx, time.Now()); err != nil { // heed.Run does it, in a program
		log.Fatal(err)
	}
	question := item("When does order 77 arrive?")
	fmt.Println(question == item("func g(x []int) {\n\treturn x[7]\n}"))
	fmt.Println(question == item("When does order 123 arrive?"))
	// Output:
	// false
	// true
}
