package mcp_test

import (
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/heedhq/heed/adapter/mcp"
	"github.com/heedhq/heed/loop"
)

// people knows tokens.
type people struct{}

func (people) Of(token string) (string, bool) { return tokens(token) }

// ExampleHandler serves several people over HTTP.
func ExampleHandler() {
	serve := func(agent *loop.Agent, people people) error {
		server, err := mcp.New(mcp.Config{Agent: agent})
		if err != nil {
			return err
		}
		return http.ListenAndServe("127.0.0.1:8808",
			mcp.Handler(server, func(token string) (person string, ok bool) {
				return people.Of(token) // compare in constant time
			}))
	}
	_ = serve
}

// ExampleAdd adds heed to a server that has tools of its own.
func ExampleAdd() {
	extend := func(server *sdk.Server, agent *loop.Agent) error {
		err := mcp.Add(server, mcp.Config{Agent: agent, Person: "ann"})
		return err
	}
	_ = extend
}
