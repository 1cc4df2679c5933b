// The examples of docs/first-steps.md by a client that oapi-codegen made: RECORDER and TOKEN in, a summary as JSON out.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"

	"kube-nvr.dev/test/rig/openapi/client"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func withToken(_ context.Context, request *http.Request) error {
	request.Header.Set("Authorization", "Bearer "+os.Getenv("TOKEN"))
	return nil
}

func connect(url string) *client.ClientWithResponses {
	made, err := client.NewClientWithResponses(url, client.WithRequestEditorFn(withToken))
	check(err)
	return made
}

func main() {
	ctx := context.Background()
	api := connect(os.Getenv("RECORDER"))
	ready, err := api.GetReadyWithResponse(ctx)
	check(err)
	found, err := api.GetCameraWithResponse(ctx, "gate")
	check(err)
	camera := found.JSON200
	from := float64(time.Now().UnixMilli())/1000 - 3600
	list, err := api.ListSegmentsWithResponse(ctx, "gate", &client.ListSegmentsParams{From: &from})
	check(err)
	segment := list.JSON200.Archive[0]
	current, err := api.GetCurrentRecordingWithResponse(ctx, "gate")
	check(err)
	metrics, err := api.GetNodeMetricsWithResponse(ctx)
	check(err)
	unknown, err := api.GetCameraWithResponse(ctx, "nobody")
	check(err)
	if unknown.ApplicationproblemJSON404.Code != client.ErrorCodeUnknownCamera {
		panic(fmt.Sprintf("code %s", unknown.ApplicationproblemJSON404.Code))
	}
	file, err := connect(*camera.Node.Playback).GetFileWithResponse(ctx, segment.Filename, nil)
	check(err)
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{
		"status":   ready.JSON200.Status,
		"camera":   camera.Name,
		"width":    camera.Codecs.Video.Width,
		"filename": segment.Filename,
		"start_ms": segment.StartMs,
		"current":  current.JSON200.Filename,
		"node":     metrics.JSON200.NodeName,
		"code":     unknown.ApplicationproblemJSON404.Code,
		"box":      string(file.Body[4:8]),
	}))
}
