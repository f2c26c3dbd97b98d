package enginetest_test

// processes are what the test's own binary does when it is started as another process.
var processes = map[string]func() int{}
