// The client of Go's standard library.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

func main() {
	for i := 1; i+1 < len(os.Args); i += 2 {
		what, method, body := os.Args[i], "GET", ""
		if what == "POST" {
			method, body = "POST", `{"id":"gate"}`
		}
		request, err := http.NewRequest(method, os.Args[i+1], strings.NewReader(body))
		if err != nil {
			panic(err)
		}
		if what == "POST" {
			request.Header.Set("content-type", "application/json")
		}
		if what == "RANGE" {
			request.Header.Set("range", "bytes=4-7")
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			panic(err)
		}
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			panic(err)
		}
		if what != "RANGE" {
			text = nil
		}
		fmt.Println(strings.TrimSpace(fmt.Sprint(what, " ", answer.StatusCode, " ", string(text))))
	}
}
