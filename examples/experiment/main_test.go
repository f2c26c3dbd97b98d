package main

func Example() {
	main()
	// Output:
	// as it is  245 outcomes  success 0.69  calls of the model 2 a decision
	// bolder    255 outcomes  success 0.88  calls of the model 0 a decision
	// better with probability 1.000, by 0.11 to 0.25; keep "bolder" (by probability)
}
