// Agent is an operations assistant that learns, in a simulated world: all packages of heed in one loop.
package main
