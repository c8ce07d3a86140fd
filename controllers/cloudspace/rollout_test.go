// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"fmt"
	"slices"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/step"
)

// fleet is CloudSpaces of several tenants, with their releases, as a cache would show them.
type fleet struct {
	t      *testing.T
	client client.Client
	clock  *clocktesting.FakePassiveClock
	*Rollout
}

func newFleet(t *testing.T, limits configv1alpha1.Rollout, tenants ...string) *fleet {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, helmv2.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	f := &fleet{t: t, clock: clocktesting.NewFakePassiveClock(noon)}
	f.client = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.CloudSpace{}).
		WithIndex(&helmv2.HelmRelease{}, rollingIndex, indexRolling).Build()
	f.Rollout = &Rollout{Reader: f.client, Limits: limits, Patience: 15 * time.Minute, Clock: f.clock}
	for _, tenant := range tenants {
		f.create(f.cloudSpace(tenant))
		s := grantedScope(f.cloudSpace(tenant))
		f.create(&helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{
			Name: s.names.ControlPlaneRelease(), Namespace: "kubeopera-system", Labels: s.owner.Labels(),
		}})
	}
	return f
}

func (f *fleet) create(object client.Object) {
	f.t.Helper()
	if err := f.client.Create(f.t.Context(), object); err != nil {
		f.t.Fatal(err)
	}
}

// cloudSpace is the default one of a tenant, or, as tenant/name, another one.
func (f *fleet) cloudSpace(of string) *v1alpha1.CloudSpace {
	var tenant, name string
	if _, err := fmt.Sscanf(of, "%s %s", &tenant, &name); err != nil {
		tenant, name = of, "default"
	}
	object := testCloudSpace(name)
	object.Namespace, object.UID = "tenant-"+tenant, types.UID("uid of "+of)
	return object
}

// rolls makes the cache show that a control plane is being changed, or with an empty cause that it is not any more.
func (f *fleet) rolls(of, cause string) {
	f.t.Helper()
	release := &helmv2.HelmRelease{}
	name := grantedScope(f.cloudSpace(of)).names.ControlPlaneRelease()
	if err := f.client.Get(f.t.Context(), client.ObjectKey{Namespace: "kubeopera-system", Name: name}, release); err != nil {
		f.t.Fatal(err)
	}
	release.Annotations = map[string]string{annotationRolling: ""}
	if cause != "" {
		release.Annotations[annotationRolling] = Turn{cause: cause, since: f.clock.Now()}.String()
	}
	if err := f.client.Update(f.t.Context(), release); err != nil {
		f.t.Fatal(err)
	}
}

// fails makes the cache show that a CloudSpace did not come up.
func (f *fleet) fails(of string, status v1alpha1.CloudSpaceStatus) {
	f.t.Helper()
	object := f.cloudSpace(of)
	if err := f.client.Get(f.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		f.t.Fatal(err)
	}
	object.Status = status
	if err := f.client.Status().Update(f.t.Context(), object); err != nil {
		f.t.Fatal(err)
	}
}

// deletes makes the cache show that a release is being deleted.
func (f *fleet) deletes(of string) {
	f.t.Helper()
	release := &helmv2.HelmRelease{}
	key := client.ObjectKey{Namespace: "kubeopera-system", Name: grantedScope(f.cloudSpace(of)).names.ControlPlaneRelease()}
	if err := f.client.Get(f.t.Context(), key, release); err != nil {
		f.t.Fatal(err)
	}
	release.Finalizers = []string{"finalizers.fluxcd.io"}
	for _, change := range []func() error{
		func() error { return f.client.Update(f.t.Context(), release) },
		func() error { return f.client.Delete(f.t.Context(), release) },
	} {
		if err := change(); err != nil {
			f.t.Fatal(err)
		}
	}
}

// asks asks for a turn and gives the reason to wait, or "begins".
func (f *fleet) asks(of, cause string) string {
	f.t.Helper()
	_, err := f.Begin(f.t.Context(), f.cloudSpace(of), cause)
	if err == nil {
		return "begins"
	}
	reason, _ := step.Explain(err, err.Error())
	return reason
}

func (f *fleet) expect(what, got, want string) {
	f.t.Helper()
	if got != want {
		f.t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestSoManyAreChangedAtATime(t *testing.T) {
	f := newFleet(t, configv1alpha1.Rollout{MaxConcurrent: 2}, "a", "b", "c")
	f.expect("the first", f.asks("a", rolledByPlatform), "begins")
	f.expect("the second, while the cache shows none of them", f.asks("b", rolledByPlatform), "begins")
	f.expect("the third", f.asks("c", rolledByPlatform), "WaitingForTurn")
	f.rolls("a", rolledByPlatform)
	f.rolls("b", rolledByPlatform)
	f.expect("the third, when the cache shows them", f.asks("c", rolledByPlatform), "WaitingForTurn")
	f.clock.SetTime(noon.Add(time.Minute))
	f.expect("the third, long after", f.asks("c", rolledByPlatform), "WaitingForTurn")
	f.rolls("a", "")
	f.expect("the third, when one is done", f.asks("c", rolledByPlatform), "begins")
}

// A turn that was given and not taken, because the operator could not write, is over some time later.
func TestATurnThatNobodyTookIsOver(t *testing.T) {
	f := newFleet(t, configv1alpha1.Rollout{MaxConcurrent: 1}, "a", "b")
	f.expect("the first", f.asks("a", rolledByPlatform), "begins")
	f.expect("the second", f.asks("b", rolledByPlatform), "WaitingForTurn")
	f.clock.SetTime(noon.Add(11 * time.Second))
	f.expect("the second, later", f.asks("b", rolledByPlatform), "begins")
}

func TestATurnThatEndedSoonIsFreeAtOnce(t *testing.T) {
	tests := map[string]func(*fleet){
		"the cache showed it":       func(f *fleet) { f.rolls("a", rolledBySpec); f.asks("b", rolledBySpec); f.rolls("a", "") },
		"the cache never showed it": func(f *fleet) { f.End(f.cloudSpace("a").UID) },
	}
	for name, ends := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, configv1alpha1.Rollout{MaxConcurrent: 1}, "a", "b")
			f.expect("the first", f.asks("a", rolledBySpec), "begins")
			f.expect("the second", f.asks("b", rolledBySpec), "WaitingForTurn")
			ends(f)
			f.expect("the second, then", f.asks("b", rolledBySpec), "begins")
		})
	}
}

// After a restart of the operator nothing but the cache tells who has a turn.
func TestTurnsOutliveARestart(t *testing.T) {
	f := newFleet(t, configv1alpha1.Rollout{MaxConcurrent: 1}, "a", "b")
	f.rolls("a", rolledBySpec)
	f.expect("another one", f.asks("b", rolledBySpec), "WaitingForTurn")
}

func TestAFailureStopsTheRollout(t *testing.T) {
	refused := v1alpha1.CloudSpaceStatus{Conditions: []metav1.Condition{{
		Type: "ControlPlaneReady", Status: metav1.ConditionFalse, Reason: "PodsRefused", LastTransitionTime: metav1.NewTime(noon),
	}}}
	tests := map[string]struct {
		maxFailed int
		cause     string
		status    v1alpha1.CloudSpaceStatus
		after     time.Duration
		deleting  bool
		// byPlatform and bySpec are what becomes of two others who ask.
		byPlatform, bySpec string
	}{
		"of the release with a change of the platform":          {cause: rolledByPlatform, status: failing("InstallFailed"), byPlatform: "RolloutStopped", bySpec: "begins"},
		"to come up in time":                                    {cause: rolledByPlatform, after: 16 * time.Minute, byPlatform: "RolloutStopped", bySpec: "begins"},
		"of long ago, for a retry that began just now":          {cause: rolledByPlatform, after: 5 * time.Hour, byPlatform: "RolloutStopped", bySpec: "begins"},
		"with a change of its own stops no other":               {cause: rolledBySpec, status: failing("InstallFailed"), byPlatform: "begins", bySpec: "begins"},
		"of a call is none":                                     {cause: rolledByPlatform, status: failing("ReconcileError"), byPlatform: "WaitingForTurn", bySpec: "begins"},
		"to find room beside the tenant's own pods is none":     {cause: rolledByPlatform, status: refused, after: 16 * time.Minute, byPlatform: "begins", bySpec: "begins"},
		"to find room, as long as it may take":                  {cause: rolledByPlatform, status: refused, byPlatform: "WaitingForTurn", bySpec: "begins"},
		"of one that did not run before is none":                {cause: rolledToMend, after: 16 * time.Minute, byPlatform: "begins", bySpec: "begins"},
		"of one that is being deleted is none":                  {cause: rolledByPlatform, after: 16 * time.Minute, deleting: true, byPlatform: "begins", bySpec: "begins"},
		"that the platform's operator allows stops nobody, yet": {maxFailed: 1, cause: rolledByPlatform, status: failing("InstallFailed"), byPlatform: "begins", bySpec: "begins"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, configv1alpha1.Rollout{MaxConcurrent: 1, MaxFailed: tt.maxFailed}, "a", "b", "c")
			f.rolls("a", tt.cause)
			f.fails("a", tt.status)
			if tt.deleting {
				f.deletes("a")
			}
			f.clock.SetTime(noon.Add(tt.after))
			f.expect("a change of the platform", f.asks("b", rolledByPlatform), tt.byPlatform)
			f.expect("a change of its own", f.asks("c", rolledBySpec), tt.bySpec)
		})
	}
}

// failing is the status of a CloudSpace whose control plane failed with this.
func failing(reason string) v1alpha1.CloudSpaceStatus {
	return v1alpha1.CloudSpaceStatus{Retry: v1alpha1.RetryStatus{Attempts: 1, LastError: &v1alpha1.RetryError{
		Step: "ControlPlaneReady", Reason: reason, Message: "no", Class: "Transient", Time: metav1.NewTime(noon),
	}}}
}

// A turn that could not be written down is given again, not waited for.
func TestATurnIsGivenAgainToWhoCouldNotTakeIt(t *testing.T) {
	f := newFleet(t, configv1alpha1.Rollout{MaxConcurrent: 1}, "a", "b")
	f.expect("the first", f.asks("a", rolledByPlatform), "begins")
	f.clock.SetTime(noon.Add(time.Second))
	f.expect("the first, after a conflict", f.asks("a", rolledByPlatform), "begins")
	f.expect("the second", f.asks("b", rolledByPlatform), "WaitingForTurn")
}

func TestAFailureThatIsMendedLetsTheRolloutGoOn(t *testing.T) {
	f := newFleet(t, configv1alpha1.Rollout{MaxConcurrent: 1}, "a", "b")
	f.rolls("a", rolledByPlatform)
	f.fails("a", failing("InstallFailed"))
	f.expect("while it fails", f.asks("b", rolledByPlatform), "RolloutStopped")
	f.fails("a", v1alpha1.CloudSpaceStatus{})
	f.expect("while it is tried again", f.asks("b", rolledByPlatform), "WaitingForTurn")
	f.rolls("a", "")
	f.expect("when it is done", f.asks("b", rolledByPlatform), "begins")
}

// What a CloudSpace asks for itself is counted apart, and not for ever: its tenant could keep it from ending.
func TestNoTenantHoldsUpTheOthers(t *testing.T) {
	f := newFleet(t, configv1alpha1.Rollout{MaxConcurrent: 1}, "a", "b", "c")
	f.rolls("a", rolledBySpec)
	f.expect("a change of the platform", f.asks("b", rolledByPlatform), "begins")
	f.expect("another one's own change", f.asks("c", rolledBySpec), "WaitingForTurn")
	f.clock.SetTime(noon.Add(15*time.Minute + time.Second))
	f.expect("another one's own change, when the first had all its time", f.asks("c", rolledBySpec), "begins")
}

func TestATurnIsWrittenDownAndReadAgain(t *testing.T) {
	tests := map[string]Turn{
		"":                          {},
		"spec/2030-01-02T12:00:00Z": {cause: "spec", since: noon},
		"platform/some time":        {cause: "platform"},
		"platform":                  {cause: "platform"},
	}
	for text, want := range tests {
		release := &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotationRolling: text}}}
		if got := turnOf(release); got != want {
			t.Errorf("%q: got %+v, want %+v", text, got, want)
		}
	}
	if text := (Turn{cause: "spec", since: noon}).String(); text != "spec/2030-01-02T12:00:00Z" {
		t.Errorf("got %q", text)
	}
}

// A tenant that changes many CloudSpaces takes no more turns than one that changes one.
func TestTurnsGoRoundTheTenants(t *testing.T) {
	f := newFleet(t, configv1alpha1.Rollout{MaxConcurrent: 1}, "a", "a b", "a c", "z")
	f.expect("the first", f.asks("a", rolledBySpec), "begins")
	waiting := []string{"a b", "a c", "z"}
	var order []string
	for len(waiting) > 0 {
		for _, of := range waiting {
			f.clock.SetTime(f.clock.Now().Add(time.Millisecond))
			f.expect(of+", while another one has its turn", f.asks(of, rolledBySpec), "WaitingForTurn")
		}
		next := f.Next()[0]
		f.clock.SetTime(f.clock.Now().Add(11 * time.Second))
		waiting = slices.DeleteFunc(waiting, func(of string) bool {
			if client.ObjectKeyFromObject(f.cloudSpace(of)) != next {
				return false
			}
			f.expect(of+", which is next", f.asks(of, rolledBySpec), "begins")
			order = append(order, of)
			return true
		})
	}
	if diff := cmp.Diff([]string{"z", "a b", "a c"}, order); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
}

func TestOneThatDoesNotWaitAnyMoreKeepsNobody(t *testing.T) {
	tests := map[string]func(*fleet){
		"it left":                   func(f *fleet) { f.Leave(f.cloudSpace("b").UID) },
		"it was not heard of since": func(f *fleet) { f.clock.SetTime(noon.Add(4 * time.Minute)) },
	}
	for name, goes := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, configv1alpha1.Rollout{MaxConcurrent: 1}, "a", "b", "c")
			f.rolls("a", rolledBySpec)
			f.expect("the one that goes", f.asks("b", rolledBySpec), "WaitingForTurn")
			f.clock.SetTime(noon.Add(time.Second))
			f.expect("the one behind it", f.asks("c", rolledBySpec), "WaitingForTurn")
			if next := f.Next(); len(next) != 1 || next[0].Namespace != "tenant-b" {
				t.Errorf("next are %v, want that of b", next)
			}
			f.rolls("a", "")
			goes(f)
			f.expect("the one behind it, then", f.asks("c", rolledBySpec), "begins")
		})
	}
}

func TestAChangeWakesTheNextWhenATurnBeginsOrEnds(t *testing.T) {
	rolling := func(cause string) *helmv2.HelmRelease {
		return &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotationRolling: cause}}}
	}
	tests := map[string]struct {
		before, after *helmv2.HelmRelease
		want          bool
	}{
		"a turn begins":         {before: rolling(""), after: rolling(rolledBySpec), want: true},
		"a turn ends":           {before: rolling(rolledBySpec), after: rolling(""), want: true},
		"it goes on":            {before: rolling(rolledBySpec), after: rolling(rolledBySpec)},
		"it was and is nothing": {before: &helmv2.HelmRelease{}, after: rolling("")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := (turned{}).Update(updateOf(tt.before, tt.after)); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
