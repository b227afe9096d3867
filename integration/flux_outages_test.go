// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"resourceset.example/renderer/integration/cluster"
	"resourceset.example/renderer/internal/forgetest"
)

const outages = "outages" // the namespace

// An outage is a fleet with an orchestrator whose tenants are one ConfigMap each. The
// tenant "always" never goes, so its object must never go either.
type outage struct {
	*fleet
	t     *testing.T
	w     *world
	setup *setup
	sync  *cluster.Sync
	uid   string // of the object of "always"
}

// outages breaks each part in the middle of a change. Afterwards everything is as the
// orchestrator says, and what had no reason to go was there all the time.
func (f *fleet) outages(t *testing.T) {
	o := newOutage(t, f)
	t.Run("API server", o.apiServer)
	t.Run("Git", o.git)
	t.Run("orchestrator", o.orchestrator)
	t.Run("Flux", o.flux)
	t.Run("renderer", o.renderer)
}

func newOutage(t *testing.T, f *fleet) *outage {
	t.Helper()
	o := &outage{fleet: f, t: t, w: newWorld(t)}
	o.setup = o.w.renderer("renderer")
	must(t, f.CreateNamespace(t.Context(), outages))
	o.w.repo.Commit("main", "Define the tenants", map[string]string{
		definitions + "/tenants.yaml": strings.NewReplacer("ORCHESTRATOR", o.w.desk.URL, "NAMESPACE", outages).Replace(`apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSetInputProvider
metadata: {name: desk, namespace: NAMESPACE}
spec:
  type: ExternalService
  url: ORCHESTRATOR/inputs
  insecure: true
---
apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata: {name: tenants, namespace: NAMESPACE}
spec:
  inputsFrom: [{kind: ResourceSetInputProvider, name: desk}]
  resources:
    - apiVersion: v1
      kind: ConfigMap
      metadata:
        name: tenant-<< inputs.tenant >>
        namespace: NAMESPACE
      data:
        version: << inputs.version | quote >>
`)})
	o.setup.once(0)
	o.sync = &cluster.Sync{Name: "outages", URL: o.setup.url, Branch: "main", Path: generated}
	f.follow(t, o.sync)
	o.converges(t)
	return o
}

// tenants are the ConfigMaps of the ResourceSet: version by tenant.
func (o *outage) tenants(ctx context.Context) (map[string]string, string, error) {
	all, err := o.List(ctx, "v1", "ConfigMap", outages)
	if err != nil {
		return nil, "", err
	}
	tenants, uid := map[string]string{}, ""
	for name, cm := range all {
		if tenant, ok := strings.CutPrefix(name, "tenant-"); ok {
			tenants[tenant] = text(cm, "data", "version")
			if tenant == "always" {
				uid = string(cm.GetUID())
			}
		}
	}
	return tenants, uid, nil
}

// converges waits until the cluster is as the orchestrator says, and until Flux has
// written down what it applied: an API server that goes away between the two has it
// forget objects, which it then never prunes.
func (o *outage) converges(t *testing.T) {
	t.Helper()
	var tenants map[string]string
	var uid string
	want := o.w.desk.at(o.w.desk.latest())
	eventually(t, fmt.Sprintf("the cluster has %v", want), func() bool {
		var err error
		tenants, uid, err = o.tenants(t.Context())
		return err == nil && maps.Equal(tenants, want)
	})
	o.applied(t, o.sync, o.w.repo.Head("main"))
	if o.uid == "" {
		o.uid = uid
	}
	if uid != o.uid {
		t.Error("the object of a tenant that never went was deleted and made again")
	}
}

// stands checks that the cluster is as it was at a state of the orchestrator, whatever
// has changed since.
func (o *outage) stands(t *testing.T, revision int) {
	t.Helper()
	tenants, uid, err := o.tenants(t.Context())
	must(t, err)
	if want := o.w.desk.at(revision); !maps.Equal(tenants, want) || uid != o.uid {
		t.Errorf("the cluster has %v, want %v", tenants, want)
	}
}

// apiServer: the change is in Git before the API server is back.
func (o *outage) apiServer(t *testing.T) {
	o.API.Kill()
	o.w.desk.change(func(tenants map[string]string) {
		delete(tenants, "acme")
		tenants["globex"], tenants["always"] = "1.0.0", "1.1.0"
	})
	o.setup.once(0)
	must(t, o.StartAPI(soon(t)))
	o.converges(t)
}

// git: neither renderer nor Flux can reach the repository.
func (o *outage) git(t *testing.T) {
	before := o.w.desk.latest()
	o.w.git.breaks(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		http.Error(w, "down", http.StatusBadGateway)
	})
	o.w.desk.change(func(tenants map[string]string) {
		delete(tenants, "globex")
		tenants["initech"], tenants["always"] = "1.0.0", "1.2.0"
	})
	o.setup.once(1)
	o.notices(t, "the repository is down", o.sync.Repository(), "False")
	o.stands(t, before)
	o.w.git.breaks(nil)
	o.setup.once(0)
	o.converges(t)
}

// notices waits until the condition Ready of a Flux object has a status.
func (o *outage) notices(t *testing.T, what string, ref cluster.Ref, status string) {
	t.Helper()
	eventually(t, "Flux notices: "+what, func() bool {
		got, err := o.Get(t.Context(), ref)
		return err == nil && got != nil && cluster.Ready(got) == status
	})
}

// orchestrator: it fails in the ways that could be taken for an empty list, and
// renderer has forgotten what it answered before.
func (o *outage) orchestrator(t *testing.T) {
	before := o.w.desk.latest()
	head := o.w.repo.Head("main")
	for name, fault := range map[string]forgetest.Fault{
		"unavailable":    forgetest.Status(http.StatusServiceUnavailable, "down"),
		"sign-in page":   forgetest.SignIn(),
		"page":           forgetest.Page(),
		"null":           forgetest.JSON("null"),
		"nothing":        forgetest.JSON("{}"),
		"half an answer": forgetest.Truncate(),
		"not authorized": forgetest.Status(http.StatusUnauthorized, "who are you?"),
		"nowhere":        forgetest.Status(http.StatusNotFound, "no such page"),
	} {
		o.w.desk.Break(fault)
		must(t, os.RemoveAll(o.setup.state))
		if r := o.setup.once(1); o.w.repo.Head("main") != head {
			t.Fatalf("%s: committed\n%s", name, r.said)
		}
	}
	o.stands(t, before)
	o.w.desk.Heal()
	o.w.desk.change(func(tenants map[string]string) {
		delete(tenants, "initech")
		tenants["umbrella"], tenants["always"] = "1.0.0", "1.3.0"
	})
	o.setup.once(0)
	o.converges(t)
}

// flux: its controllers are killed while there is something to apply and to prune.
func (o *outage) flux(t *testing.T) {
	o.Source.Kill()
	o.w.desk.change(func(tenants map[string]string) {
		delete(tenants, "umbrella")
		tenants["hooli"], tenants["always"] = "1.0.0", "1.4.0"
	})
	o.setup.once(0)
	o.Kustomize.Kill()
	must(t, o.StartKustomize(soon(t)))
	must(t, o.StartSource(soon(t)))
	o.converges(t)
}

// renderer is killed again and again while tenants come and go.
func (o *outage) renderer(t *testing.T) {
	seed := number(t, "RENDERER_SEED", time.Now().UnixNano())
	t.Logf("RENDERER_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(uint64(seed), 0))
	const lives = 8
	pushed := 0
	for range lives {
		head := o.w.repo.Head("main")
		o.w.desk.churn(rng)
		o.w.desk.churn(rng)
		run := o.setup.start()
		time.Sleep(100*time.Millisecond + rand.N(1500*time.Millisecond)) // not a wait for something: the moment of the kill
		run.kill()
		if !run.killed() {
			t.Fatalf("ended by itself\n%s", run.logged())
		}
		if o.w.repo.Head("main") != head {
			pushed++
		}
	}
	t.Logf("%d of %d lives pushed", pushed, lives)
	o.setup.once(0)
	o.converges(t)
	o.w.repo.Fsck()
	for _, name := range slices.Sorted(maps.Keys(o.w.desk.at(o.w.desk.latest()))) {
		if !strings.Contains(o.w.repo.Read("main", generated+"/"+outages+"/tenants/inputs.lock"), name) {
			t.Errorf("inputs.lock lacks %s", name)
		}
	}
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}
