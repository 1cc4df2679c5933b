// Compares objects with those of a cluster as GitOps controllers do, by their own libraries: gitops COMPARISON <objects.yaml.
// KUBECONFIG names the cluster. Prints a line of JSON for each object: what it is, whether it would be changed, and how.
//
//	argo              as Argo CD by default: three-way, with the last applied configuration
//	argo-server-side  as Argo CD with ServerSideDiff=true
//	flux              as Flux: what a server-side apply by kustomize-controller would change
//	flux-apply        applies the objects as Flux does, and says what that changed
//	argo-prune        what Argo CD would delete once it is no longer in Git; deletes nothing
//	flux-prune        deletes the objects as Flux does once they are no longer in Git, and says which
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/argoproj/gitops-engine/pkg/diff"
	"github.com/argoproj/gitops-engine/pkg/sync/common"
	"github.com/argoproj/gitops-engine/pkg/sync/resource"
	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/normalize"
	"github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/go-logr/logr"
)

const argoManager = "argocd-controller"

type line struct {
	Object  string          `json:"object"`
	Changed bool            `json:"changed"`
	Live    json.RawMessage `json:"live,omitempty"`
	Wanted  json.RawMessage `json:"wanted,omitempty"`
}

func main() {
	log.SetLogger(logr.Discard())
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, comparison string) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 200, 200
	api, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	objects, err := utils.ReadObjects(os.Stdin)
	if err != nil {
		return err
	}
	compare, ok := map[string]func(context.Context, client.Client, *unstructured.Unstructured) (line, error){
		"argo":             argo,
		"argo-server-side": argoServerSide,
		"flux":             flux,
		"flux-apply":       fluxApply,
		"argo-prune":       argoPrune,
		"flux-prune":       fluxPrune,
	}[comparison]
	if !ok {
		return fmt.Errorf("unknown: %s", comparison)
	}
	if err := normalizeForFlux(comparison, objects); err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	for _, object := range objects {
		found, err := compare(ctx, api, object)
		if err != nil {
			return fmt.Errorf("%s: %w", utils.FmtUnstructured(object), err)
		}
		found.Object = utils.FmtUnstructured(object)
		if err := out.Encode(found); err != nil {
			return err
		}
	}
	return nil
}

func liveOf(ctx context.Context, api client.Client, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	return live, api.Get(ctx, client.ObjectKeyFromObject(object), live)
}

func argo(ctx context.Context, api client.Client, object *unstructured.Unstructured) (line, error) {
	return argoDiff(ctx, api, object)
}

func argoServerSide(ctx context.Context, api client.Client, object *unstructured.Unstructured) (line, error) {
	// Nothing in a test cluster changes what is written.
	return argoDiff(ctx, api, object, diff.WithServerSideDiff(true), diff.WithIgnoreMutationWebhook(false),
		diff.WithManager(argoManager), diff.WithServerSideDryRunner(dryRunner{api}))
}

func argoDiff(ctx context.Context, api client.Client, object *unstructured.Unstructured, options ...diff.Option) (line, error) {
	live, err := liveOf(ctx, api, object)
	if err != nil {
		return line{}, err
	}
	result, err := diff.Diff(object, live, append(options, diff.WithLogr(logr.Discard()))...)
	if err != nil {
		return line{}, err
	}
	return line{Changed: result.Modified, Live: result.NormalizedLive, Wanted: result.PredictedLive}, nil
}

type dryRunner struct{ api client.Client }

func (d dryRunner) Run(ctx context.Context, object *unstructured.Unstructured, manager string) (string, error) {
	predicted := object.DeepCopy()
	err := d.api.Patch(ctx, predicted, client.Apply, client.DryRunAll, client.FieldOwner(manager), client.ForceOwnership)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(predicted)
	return string(text), err
}

func fluxManager(api client.Client) *ssa.ResourceManager {
	return ssa.NewResourceManager(api, nil, ssa.Owner{Field: "kustomize-controller", Group: "kustomize.toolkit.fluxcd.io"})
}

func normalizeForFlux(comparison string, objects []*unstructured.Unstructured) error {
	if comparison != "flux" && comparison != "flux-apply" {
		return nil
	}
	return normalize.UnstructuredList(objects)
}

func flux(ctx context.Context, api client.Client, object *unstructured.Unstructured) (line, error) {
	entry, live, wanted, err := fluxManager(api).Diff(ctx, object, ssa.DefaultDiffOptions())
	if err != nil {
		return line{}, err
	}
	found := line{Changed: entry.Action != ssa.UnchangedAction}
	if found.Changed && live != nil {
		found.Live, _ = live.MarshalJSON()
		found.Wanted, _ = wanted.MarshalJSON()
	}
	return found, nil
}

func fluxApply(ctx context.Context, api client.Client, object *unstructured.Unstructured) (line, error) {
	entry, err := fluxManager(api).Apply(ctx, object, ssa.DefaultApplyOptions())
	if err != nil {
		return line{}, err
	}
	return line{Changed: entry.Action != ssa.UnchangedAction}, nil
}

// argoPrune asks the check that Argo CD's sync makes before it prunes an object.
func argoPrune(_ context.Context, _ client.Client, object *unstructured.Unstructured) (line, error) {
	isKept := resource.HasAnnotationOption(object, common.AnnotationSyncOptions, common.SyncOptionDisablePrune)
	return line{Changed: !isKept}, nil
}

// fluxPrune excludes what kustomize-controller excludes.
func fluxPrune(ctx context.Context, api client.Client, object *unstructured.Unstructured) (line, error) {
	options := ssa.DefaultDeleteOptions()
	options.Exclusions = map[string]string{
		"kustomize.toolkit.fluxcd.io/prune":     "disabled",
		"kustomize.toolkit.fluxcd.io/reconcile": "disabled",
	}
	entry, err := fluxManager(api).Delete(ctx, object, options)
	if err != nil {
		return line{}, err
	}
	return line{Changed: entry.Action == ssa.DeletedAction}, nil
}
