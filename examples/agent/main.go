package main

import (
	"context"
	"fmt"
	"time"
)

func main() {
	ctx := context.Background()
	for _, how := range []way{learning, off, told, oracle} {
		t := time.Now()
		l, err := live(ctx, how, 1, 2000, nil, func(int, int) {})
		if err != nil {
			fmt.Println(how, err)
			continue
		}
		fmt.Println(how, time.Since(t))
		for i := range 4 {
			fmt.Printf("  %+v\n", scoreOf(l.part(i, 4)))
		}
	}
}
