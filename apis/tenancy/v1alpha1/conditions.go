// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Condition types of Tenant and CloudSpace. Ready summarizes and is always present. Reconciling and Stalled follow kstatus:
// present only when True, never both.
const (
	ConditionReady       = "Ready"
	ConditionReconciling = "Reconciling"
	ConditionStalled     = "Stalled"
)

// Condition types of a CloudSpace, one for each step, in the order of the steps.
const (
	ConditionQuotaReserved     = "QuotaReserved"
	ConditionNamespaceReady    = "NamespaceReady"
	ConditionPoliciesApplied   = "PoliciesApplied"
	ConditionControlPlaneReady = "ControlPlaneReady"
	ConditionKubeconfigReady   = "KubeconfigReady"
	ConditionFluxReady         = "FluxReady"
	ConditionUpToDate          = "UpToDate"
	ConditionAdvisorReady      = "AdvisorReady"
)

// Condition types that only a Tenant has; it shares NamespaceReady and KubeconfigReady with the CloudSpace.
const (
	ConditionQuotaConfigured  = "QuotaConfigured"
	ConditionAccessConfigured = "AccessConfigured"
	ConditionCloudSpaceReady  = "CloudSpaceReady"
)

// ConditionOverCommitted is present on a TenantQuota only when True: more is reserved than it allows, because it was lowered.
const ConditionOverCommitted = "OverCommitted"

// Reasons of conditions: a closed list, each with one meaning. docs/operations.md says what to do about each.
const (
	// ReasonSucceeded stands on a step that is proven.
	ReasonSucceeded = "Succeeded"
	// ReasonProvisioned stands on Ready when everything is proven.
	ReasonProvisioned = "Provisioned"
	// ReasonProgressing stands on Reconciling.
	ReasonProgressing = "Progressing"
	// ReasonNotAttempted stands on a step whose predecessors are not proven yet.
	ReasonNotAttempted = "NotAttempted"
	// ReasonNotConfigured stands on a step that the PlatformConfig leaves out: it is as good as proven.
	ReasonNotConfigured = "NotConfigured"
	// ReasonDegraded stands on Ready when something fails after the first Active.
	ReasonDegraded = "Degraded"
	// ReasonDeleting stands on Ready while the object is taken down.
	ReasonDeleting = "Deleting"
	// ReasonReconcileError means that a call to an API server failed; it is tried again.
	ReasonReconcileError = "ReconcileError"
	// ReasonNotOurs means that an object stands under a name we need and was not made by us. It is left alone.
	ReasonNotOurs = "NotOurs"
	// ReasonTenantNotFound means that the namespace of the CloudSpace is not that of a Tenant.
	ReasonTenantNotFound = "TenantNotFound"
	// ReasonUnsupportedVersion means that the platform does not offer the Kubernetes version.
	ReasonUnsupportedVersion = "UnsupportedVersion"
	// ReasonUnsupportedSize means that the platform does not offer the control-plane size.
	ReasonUnsupportedSize = "UnsupportedSize"
	// ReasonEndpointNotOffered means that the platform does not offer the endpoint type, or not the hostname.
	ReasonEndpointNotOffered = "EndpointNotOffered"
	// ReasonHostnameTaken means that another CloudSpace asked for the hostname before, or the platform uses it itself.
	ReasonHostnameTaken = "HostnameTaken"
	// ReasonVersionSkew means that a version cannot be reached from the one that runs, or does not go with the host cluster's.
	ReasonVersionSkew = "VersionSkew"
	// ReasonWaitingForTurn means that a change of the control plane waits until others are done.
	ReasonWaitingForTurn = "WaitingForTurn"
	// ReasonRolloutStopped means that a change of the platform is not made because it failed for another control plane.
	ReasonRolloutStopped = "RolloutStopped"
	// ReasonResourcesTooSmall means that spec.resources have no room for the control plane and what belongs to it.
	ReasonResourcesTooSmall = "ResourcesTooSmall"
	// ReasonQuotaPending means that the tenant's quota has not answered yet.
	ReasonQuotaPending = "QuotaPending"
	// ReasonQuotaExhausted means that the tenant's quota has no room for what is asked for. It is waited for, oldest first.
	ReasonQuotaExhausted = "QuotaExhausted"
	// ReasonEnforced stands on Ready of a TenantQuota: its ledger is kept.
	ReasonEnforced = "Enforced"
	// ReasonHardLowered stands on OverCommitted.
	ReasonHardLowered = "HardLowered"
	// ReasonTerminating means that an earlier object of the same name is still being deleted.
	ReasonTerminating = "Terminating"
	// ReasonWaitingForQuota means that Kubernetes has not taken up the ResourceQuota of the host namespace yet.
	ReasonWaitingForQuota = "WaitingForQuota"
	// ReasonResizeBlocked means that resources cannot be lowered, or a control plane not be made larger, while so much is in use.
	ReasonResizeBlocked = "ResizeBlocked"
	// ReasonPullSecretUnusable means that a pull secret of the platform is not there, or not what it must be.
	ReasonPullSecretUnusable = "PullSecretUnusable"
	// ReasonInstalling means that a release is being installed or upgraded.
	ReasonInstalling = "Installing"
	// ReasonInstallFailed means that installing or upgrading a release failed; it is tried again.
	ReasonInstallFailed = "InstallFailed"
	// ReasonChartNotReady means that the chart of a release cannot be fetched.
	ReasonChartNotReady = "ChartNotReady"
	// ReasonStarting means that the control plane is installed and its API server or etcd does not run yet, or not any more.
	ReasonStarting = "Starting"
	// ReasonRedundancyLost stands on ControlPlaneReady while a control plane with high availability goes on without some members.
	ReasonRedundancyLost = "RedundancyLost"
	// ReasonPodsRefused means that Kubernetes refuses pods of the control plane: a quota or a policy is in the way.
	ReasonPodsRefused = "PodsRefused"
	// ReasonVolumeFailed means that a volume of the control plane is refused, or cannot be provided.
	ReasonVolumeFailed = "VolumeFailed"
	// ReasonUnschedulable means that no node takes a pod of the control plane.
	ReasonUnschedulable = "Unschedulable"
	// ReasonImagePullFailed means that an image of the control plane cannot be pulled.
	ReasonImagePullFailed = "ImagePullFailed"
	// ReasonContainerNotCreated means that a container of the control plane cannot be made as it is specified.
	ReasonContainerNotCreated = "ContainerNotCreated"
	// ReasonCrashLooping means that a container of the control plane ends again and again.
	ReasonCrashLooping = "CrashLooping"
	// ReasonOutOfMemory means that a container of the control plane is killed because it needs more memory than its limit.
	ReasonOutOfMemory = "OutOfMemory"
	// ReasonWaitingForAddress means that the cloud has not given the LoadBalancer of the CloudSpace an address yet.
	ReasonWaitingForAddress = "WaitingForAddress"
	// ReasonWaitingForKubeconfig means that the control plane has not written its kubeconfig yet.
	ReasonWaitingForKubeconfig = "WaitingForKubeconfig"
	// ReasonSecretsUnreadable means that the operator asks in vain for the Secrets of a namespace in which it works.
	ReasonSecretsUnreadable = "SecretsUnreadable"
	// ReasonKubeconfigInvalid means that the control plane's kubeconfig is not what it must be; it is not used.
	ReasonKubeconfigInvalid = "KubeconfigInvalid"
	// ReasonWaitingForFlux means that Flux is installed and its parts are not all available yet.
	ReasonWaitingForFlux = "WaitingForFlux"
	// ReasonInvalidTemplate means that the template of the default CloudSpace asks for what cannot be.
	ReasonInvalidTemplate = "InvalidTemplate"
	// ReasonCloudSpaceNotReady means that the default CloudSpace is not ready yet.
	ReasonCloudSpaceNotReady = "CloudSpaceNotReady"
	// ReasonDeletionProtected means that something may not be deleted until its protection is lifted.
	ReasonDeletionProtected = "DeletionProtected"
	// ReasonCloudSpaceSuspended means that spec.suspend asks for neither control plane nor workloads to run.
	ReasonCloudSpaceSuspended = "CloudSpaceSuspended"
	// ReasonRemaining stands on a step of taking down while something is left of it.
	ReasonRemaining = "Remaining"
)

// IsTerminalReason tells whether a step with this reason cannot succeed until something outside of it changes. The time of
// its deadline does not run meanwhile.
func IsTerminalReason(reason string) bool {
	switch reason {
	case ReasonNotOurs, ReasonUnsupportedVersion, ReasonUnsupportedSize, ReasonVersionSkew, ReasonEndpointNotOffered, ReasonHostnameTaken,
		ReasonResourcesTooSmall, ReasonKubeconfigInvalid, ReasonInvalidTemplate:
		return true
	default:
		return false
	}
}
