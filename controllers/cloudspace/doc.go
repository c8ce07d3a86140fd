// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cloudspace turns a CloudSpace into a running vCluster with Flux inside, and takes it down again.
//
// Read reconciler.go first, then steps.go, the list of what a CloudSpace goes through:
//
//	condition          objects it makes, and where
//	QuotaReserved      none
//	NamespaceReady     Namespace vcluster-<host name>; in it the RoleBinding that lets the operator read the kubeconfig
//	PoliciesApplied    NetworkPolicies, three ResourceQuotas, LimitRange and, with high availability, PodDisruptionBudget of etcd in the host namespace
//	ControlPlaneReady  HelmRelease <host name> in kubeopera-system, with the HelmRepository and HelmChart all share,
//	                   and copies of the platform's pull secrets in the host namespace
//	KubeconfigReady    Secret cloudspace-<host name>-kubeconfig in kubeopera-system; with an endpoint outside the host cluster a second one for
//	                   Flux, and with a hostname the Ingress or TLSRoute cloudspace in the host namespace
//	FluxReady          HelmRelease <host name>-flux in kubeopera-system, installed into the CloudSpace
//	UpToDate           none; ends the turn of a control plane that was changed
//	AdvisorReady       HelmRelease <host name>-advisor in kubeopera-system, installed into the CloudSpace
//
// target.go says which versions a control plane goes to next, change.go makes the release of that, or holds it until rollout.go
// gives it its turn.
//
// networkpolicies.go says what its pods reach, corefile.go whom they ask for names.
//
// endpoint.go says from where the CloudSpace is reached, claim.go who has a hostname, route.go what leads from it;
// highavailability.go is all that is different with several members.
//
// shares.go says what of a CloudSpace's resources is its control plane's, quotas.go what is counted, resize.go how quotas get from one amount
// to another, in amounts.go's arithmetic.
//
// observe.go reads, desired.go and values.go say what should be, release.go judges a HelmRelease, kubeconfig.go rebuilds
// the kubeconfig, workloads.go, diagnose.go and minimum.go judge what runs, why it does not, and whether it has room, status.go
// sums up. Those, but for observe.go, are pure. drift.go has Flux put right what was altered by hand, startup.go and warnings.go look
// at pods and events of a control plane that does not start, kubeconfigwatch.go and pullsecretwatch.go follow Secrets, pullsecrets.go
// copies them, flux.go asks inside, suspend.go takes all to rest, teardown.go is the way down, and heldup.go says what it waits for.
package cloudspace
