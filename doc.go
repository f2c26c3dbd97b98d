// Package heed is the root of a library that makes an AI-agent application learn from what happens to it.
package heed
