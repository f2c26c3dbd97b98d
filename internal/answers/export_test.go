package answers

// Keys are what the record of an answer is found by.
var Keys = keysOf
