// The MCP SDK for Go: takes steps from standard input, and prints what each call returned.
package main

import (
	"context"
	"encoding/json"
	"log"
	"net/http"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type server struct {
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

type step struct {
	Server    string         `json:"server"`
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
}

// RoundTrip adds the headers of the server.
func (s server) RoundTrip(request *http.Request) (*http.Response, error) {
	for name, value := range s.Headers {
		request.Header.Set(name, value)
	}
	return http.DefaultTransport.RoundTrip(request)
}

func call(ctx context.Context, to server, one step) string {
	client := mcp.NewClient(&mcp.Implementation{Name: "go", Version: "1.0.0"}, nil)
	transport := &mcp.StreamableClientTransport{Endpoint: to.URL, HTTPClient: &http.Client{Transport: to}}
	session, err := client.Connect(ctx, transport, nil)
	check(err)
	defer session.Close()
	_, err = session.ListTools(ctx, nil)
	check(err)
	for {
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: one.Tool, Arguments: one.Arguments})
		check(err)
		text := ""
		for _, part := range result.Content {
			if block, ok := part.(*mcp.TextContent); ok {
				text += block.Text
			}
		}
		if !strings.Contains(text, "waiting for approval") {
			return text
		}
	}
}

func main() {
	var config struct {
		Servers map[string]server `json:"mcpServers"`
	}
	file, err := os.ReadFile(os.Args[1])
	check(err)
	check(json.Unmarshal(file, &config))
	var steps []step
	check(json.NewDecoder(os.Stdin).Decode(&steps))
	texts := []string{}
	for _, one := range steps {
		texts = append(texts, call(context.Background(), config.Servers[one.Server], one))
	}
	check(json.NewEncoder(os.Stdout).Encode(texts))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
