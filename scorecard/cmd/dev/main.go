package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/heedhq/heed/scorecard/internal/card"
	"github.com/heedhq/heed/scorecard/internal/databases"
)

func main() {
	if databases.Child() {
		return
	}
	defer databases.Close()
	long := os.Getenv("LONG") != ""
	var lines []card.Line
	for _, l := range databases.Lines() {
		for _, a := range os.Args[1:] {
			if strings.HasPrefix(l.Name, a) {
				lines = append(lines, l)
			}
		}
	}
	card.Run(context.Background(), lines, card.Settings{Long: long, Seed: 1, Root: "/work/wt-scb"}, 1, func(o card.Outcome) {
		fmt.Println(o.Text())
		for _, n := range o.Result.Notes {
			fmt.Println("   |", n)
		}
		for _, c := range o.Controls {
			fmt.Println("   control", c)
		}
	})
}
