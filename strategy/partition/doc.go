// Package partition turns a text or a vector into an item for strategy.Query, so that the choice of
// an arm depends on the request.
//
// A [Partition] has cells. Each is a unit vector, and a text belongs to the cell whose vector is
// nearest to its own. The cells come from texts alone, without outcomes, by spherical k-means
// (Dhillon and Modha 2001) from seeds as k-means++ draws them (Arthur and Vassilvitskii 2007).
// Vectors come from an embedder of the host's, or from [Form], which needs no model. The arms of
// each cell are learned by the learner's Pooling: under strategy.TwoLevel a cell without outcomes
// begins with what all cells have shown.
//
//	part, err := partition.New(ctx, partition.Config{Store: st})
//	item, vector, err := part.Item(ctx, "Why does this function return nil?") // "partition:286.7"
//	choice, err := learner.Select(ctx, strategy.Query{Item: item, Vector: vector})
//	go heed.Run(ctx, time.Minute, st, learner, part)
//
// The cells come from the texts that were seen: [Partition.Item] keeps their vectors, and
// [Partition.Sweep] learns from them in small batches (Sculley 2010). To begin with texts of the
// past, call Item with some hundred of them, and then Sweep. Between two sweeps the cells stay as
// they are. An item's name stays the name of its cell, so that its evidence stays, too. Package
// loop does all of this with Choosing.ByText.
//
// If requests have a subject, a route or a customer, use that as the item instead. docs/choosing.md
// has figures.
package partition
