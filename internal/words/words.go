// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package words is what tenants are told. The words of the operator are for administrators: they name pods, images and nodes of the host.
package words

import (
	"cmp"
	"strings"

	tenancyv1alpha1 "github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

const (
	notYet    = "the platform is working on it"
	platforms = "the platform cannot run it at the moment; its administrators can see why, and it is tried again"
)

// said is what a tenant is told for each reason of a condition.
var said = map[string]string{
	tenancyv1alpha1.ReasonSucceeded:            "",
	tenancyv1alpha1.ReasonProvisioned:          "",
	tenancyv1alpha1.ReasonProgressing:          notYet,
	tenancyv1alpha1.ReasonNotAttempted:         "",
	tenancyv1alpha1.ReasonNotConfigured:        "",
	tenancyv1alpha1.ReasonDegraded:             "it does not work as it should at the moment; the platform is working on it",
	tenancyv1alpha1.ReasonDeleting:             "it is being deleted",
	tenancyv1alpha1.ReasonReconcileError:       "the platform met an error, and tries again",
	tenancyv1alpha1.ReasonNotOurs:              "something stands in its place on the host; an administrator of the platform must look at it",
	tenancyv1alpha1.ReasonTenantNotFound:       "its tenant is not there",
	tenancyv1alpha1.ReasonUnsupportedVersion:   "the platform does not offer this Kubernetes version",
	tenancyv1alpha1.ReasonUnsupportedSize:      "the platform does not offer this size of control plane",
	tenancyv1alpha1.ReasonEndpointNotOffered:   "the platform does not offer this endpoint",
	tenancyv1alpha1.ReasonHostnameTaken:        "the hostname is taken",
	tenancyv1alpha1.ReasonVersionSkew:          "this Kubernetes version cannot be reached from the one that runs, or the platform cannot run it",
	tenancyv1alpha1.ReasonWaitingForTurn:       "the change of the control plane waits for its turn; until then it works on as it is",
	tenancyv1alpha1.ReasonRolloutStopped:       "a change of the platform was stopped; it works on as it is",
	tenancyv1alpha1.ReasonResourcesTooSmall:    "resources have no room for the control plane",
	tenancyv1alpha1.ReasonQuotaPending:         "waiting for the quota to be reserved",
	tenancyv1alpha1.ReasonQuotaExhausted:       "waiting for room in the quota",
	tenancyv1alpha1.ReasonEnforced:             "",
	tenancyv1alpha1.ReasonHardLowered:          "more is reserved than the quota allows, because it was lowered",
	tenancyv1alpha1.ReasonTerminating:          "something of an earlier one with the same name is still being deleted",
	tenancyv1alpha1.ReasonWaitingForQuota:      notYet,
	tenancyv1alpha1.ReasonResizeBlocked:        "resources cannot be lowered while so much is in use",
	tenancyv1alpha1.ReasonPullSecretUnusable:   platforms,
	tenancyv1alpha1.ReasonInstalling:           "it is being installed",
	tenancyv1alpha1.ReasonInstallFailed:        "installing it failed; it is tried again",
	tenancyv1alpha1.ReasonChartNotReady:        "what it is installed from cannot be fetched at the moment; it is tried again",
	tenancyv1alpha1.ReasonStarting:             "the control plane is starting",
	tenancyv1alpha1.ReasonRedundancyLost:       "the control plane goes on without some of its members",
	tenancyv1alpha1.ReasonPodsRefused:          platforms,
	tenancyv1alpha1.ReasonVolumeFailed:         "a volume of the control plane cannot be provided at the moment; it is tried again",
	tenancyv1alpha1.ReasonUnschedulable:        "there is no room for the control plane at the moment; it is tried again",
	tenancyv1alpha1.ReasonImagePullFailed:      "an image of the control plane cannot be fetched at the moment; it is tried again",
	tenancyv1alpha1.ReasonContainerNotCreated:  platforms,
	tenancyv1alpha1.ReasonCrashLooping:         "the control plane ends again and again; it is tried again",
	tenancyv1alpha1.ReasonOutOfMemory:          "the control plane needs more memory than its size has: choose a larger one",
	tenancyv1alpha1.ReasonWaitingForAddress:    "waiting for an address of its own",
	tenancyv1alpha1.ReasonWaitingForKubeconfig: "the control plane is starting",
	tenancyv1alpha1.ReasonSecretsUnreadable:    notYet,
	tenancyv1alpha1.ReasonKubeconfigInvalid:    "the control plane's kubeconfig was altered, and is not used",
	tenancyv1alpha1.ReasonWaitingForFlux:       "Flux is starting",
	tenancyv1alpha1.ReasonInvalidTemplate:      "the template of the default CloudSpace asks for what cannot be",
	tenancyv1alpha1.ReasonCloudSpaceNotReady:   notYet,
	tenancyv1alpha1.ReasonDeletionProtected:    "its deletion is protected: set spec.deletionProtection to false first",
	tenancyv1alpha1.ReasonCloudSpaceSuspended:  "it is suspended, as spec.suspend asks",
	tenancyv1alpha1.ReasonRemaining:            "something of it is left",
}

// own are the reasons for which the operator's words are about what the tenant asked for, and say more.
var own = map[string]bool{
	tenancyv1alpha1.ReasonUnsupportedVersion: true, tenancyv1alpha1.ReasonUnsupportedSize: true, tenancyv1alpha1.ReasonEndpointNotOffered: true,
	tenancyv1alpha1.ReasonHostnameTaken: true, tenancyv1alpha1.ReasonVersionSkew: true, tenancyv1alpha1.ReasonResourcesTooSmall: true,
	tenancyv1alpha1.ReasonQuotaExhausted: true, tenancyv1alpha1.ReasonResizeBlocked: true,
}

// Of a condition's reason: what a tenant is told. The operator's words are passed on only where they are about what the tenant asked for, and
// name nothing of the host.
func Of(reason, words string) string {
	text, known := said[reason]
	if !known {
		return notYet
	}
	if own[reason] && words != "" && !ofHost(words) {
		return words
	}
	return text
}

// ofHost tells whether words name something of the host cluster: a host namespace, or its version.
func ofHost(words string) bool {
	return strings.Contains(words, "vcluster-") || strings.Contains(words, "host cluster")
}

// events are those that are no phase and no condition. Where there is nothing, the operator's words are fit for everybody.
var events = map[string]string{
	"DriftFound":        "something of the control plane was altered by hand; it is put right",
	"KubeconfigExpires": "",
	"ReleaseMended":     "an installation that had been given up is tried again",
}

// OfEvent is what a tenant is told by an event. The words of phases, and of steps that are proven, are fit for everybody.
func OfEvent(warning bool, reason, words string) string {
	if text, known := events[reason]; known {
		return cmp.Or(text, words)
	}
	if _, condition := said[reason]; condition || warning && reason != string(tenancyv1alpha1.CloudSpaceFailed) {
		return Of(reason, words)
	}
	return words
}
