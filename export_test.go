package heed

// Sweep is what [Run] does at each interval.
var Sweep = sweep
