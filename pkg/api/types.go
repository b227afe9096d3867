// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strconv"
	"time"
)

// API groups, versions and kinds that renderer understands.
const (
	Group      = "fluxcd.controlplane.io"
	APIVersion = Group + "/v1"

	ReceiverGroup      = "notification.toolkit.fluxcd.io"
	ReceiverAPIVersion = ReceiverGroup + "/v1"

	KindResourceSet   = "ResourceSet"
	KindInputProvider = "ResourceSetInputProvider"
	KindReceiver      = "Receiver"
)

// DefaultNamespace is the namespace of an object that names none.
const DefaultNamespace = "default"

// Annotations of the operator that renderer honours, with the operator's meaning.
const (
	// AnnotationReconcile set to "disabled" pauses a ResourceSet or provider, and
	// leaves a rendered object out of the output.
	AnnotationReconcile = Group + "/reconcile"
	// AnnotationReconcileEvery is how often a provider is fetched, a Go duration.
	AnnotationReconcileEvery = Group + "/reconcileEvery"
	// AnnotationReconcileTimeout bounds one fetch of a provider, a Go duration.
	AnnotationReconcileTimeout = Group + "/reconcileTimeout"
)

// Annotations of our own.
const (
	// AnnotationDirectory, on a ResourceSet, is a template that names the folder
	// of each input set.
	AnnotationDirectory = "renderer/directory"
	// AnnotationAllowForks set to "true", on a provider, exports pull requests
	// whose head is in another repository.
	AnnotationAllowForks = "renderer/allow-forks"
	// AnnotationAllowStructure set to "true", on a ResourceSet, accepts templates
	// whose structure depends on input values.
	AnnotationAllowStructure = "renderer/allow-structure"
	// AnnotationSubstitute set to "true", on a ResourceSet, leaves Flux's
	// post-build substitution switched on for objects that hold "${".
	AnnotationSubstitute = "renderer/substitute"
	// AnnotationSensitive, on a provider, lists top-level fields (separated by
	// commas) that are kept out of Git; a digest stands for them.
	AnnotationSensitive = "renderer/sensitive"
	// AnnotationHoldDowngrades set to "true", on a provider with a semver filter,
	// keeps the newest tag that was exported when it vanishes.
	AnnotationHoldDowngrades = "renderer/hold-downgrades"
	// AnnotationBaseURL, on a provider of a GitLab type, is where that server's first
	// page is, if it is below a path of its host.
	AnnotationBaseURL = "renderer/base-url"
)

// Labels that mark the ResourceSet which owns an object, as the operator sets them.
const (
	LabelOwnerName      = "resourceset.fluxcd.controlplane.io/name"
	LabelOwnerNamespace = "resourceset.fluxcd.controlplane.io/namespace"
)

// Input strategies.
const (
	StrategyFlatten = "Flatten"
	StrategyPermute = "Permute"
)

// Types of ResourceSetInputProvider.
const (
	TypeStatic                   = "Static"
	TypeExternalService          = "ExternalService"
	TypeExternalArtifact         = "ExternalArtifact"
	TypeGitHubPullRequest        = "GitHubPullRequest"
	TypeGitHubBranch             = "GitHubBranch"
	TypeGitHubTag                = "GitHubTag"
	TypeGitLabMergeRequest       = "GitLabMergeRequest"
	TypeGitLabBranch             = "GitLabBranch"
	TypeGitLabTag                = "GitLabTag"
	TypeGitLabEnvironment        = "GitLabEnvironment"
	TypeGiteaPullRequest         = "GiteaPullRequest"
	TypeGiteaBranch              = "GiteaBranch"
	TypeGiteaTag                 = "GiteaTag"
	TypeAzureDevOpsPullRequest   = "AzureDevOpsPullRequest"
	TypeAzureDevOpsBranch        = "AzureDevOpsBranch"
	TypeAzureDevOpsTag           = "AzureDevOpsTag"
	TypeAWSCodeCommitPullRequest = "AWSCodeCommitPullRequest"
	TypeAWSCodeCommitBranch      = "AWSCodeCommitBranch"
	TypeAWSCodeCommitTag         = "AWSCodeCommitTag"
	TypeOCIArtifactTag           = "OCIArtifactTag"
	TypeACRArtifactTag           = "ACRArtifactTag"
	TypeECRArtifactTag           = "ECRArtifactTag"
	TypeGARArtifactTag           = "GARArtifactTag"

	// Types that the public CRD does not have.
	TypeBitbucketPullRequest = "BitbucketPullRequest"
	TypeBitbucketBranch      = "BitbucketBranch"
	TypeBitbucketTag         = "BitbucketTag"
	TypeGitRepositoryBranch  = "GitRepositoryBranch"
	TypeGitRepositoryTag     = "GitRepositoryTag"
	TypeGitRepositoryPath    = "GitRepositoryPath"
)

// DefaultFilterLimit is how many input sets a provider exports when its filter
// names no limit, and MaxFilterLimit the most that a limit may ask for.
const (
	DefaultFilterLimit = 100
	MaxFilterLimit     = 10000
)

// A Position is a place in a definitions file. Line counts from 1; 0 is unknown.
type Position struct {
	File string
	Line int
}

// String is "file:line", or the file alone when the line is unknown.
func (p Position) String() string {
	if p.Line <= 0 {
		return p.File
	}
	return p.File + ":" + strconv.Itoa(p.Line)
}

// An Input is one input set: the values of one pull request, tenant or other
// thing that a template is rendered for. Its values are JSON values (see the
// package comment).
type Input = map[string]any

// Meta is what every object has.
type Meta struct {
	Name        string
	Namespace   string // DefaultNamespace when the file names none
	Labels      map[string]string
	Annotations map[string]string

	// Pos is where the object's document starts.
	Pos Position
	// Lines maps field paths ("spec.resources[1]", "spec.resourcesTemplate") to
	// lines of Pos.File. For a block scalar it is the line of its first line of text.
	Lines map[string]int
}

// NamespacedName is "namespace/name".
func (m *Meta) NamespacedName() string { return m.Namespace + "/" + m.Name }

// At is the position of a field path, or of its nearest parent that is known.
func (m *Meta) At(path string) Position {
	for path != "" {
		if line, ok := m.Lines[path]; ok {
			return Position{File: m.Pos.File, Line: line}
		}
		cut := len(path) - 1
		for cut > 0 && path[cut] != '.' && path[cut] != '[' {
			cut--
		}
		path = path[:cut]
	}
	return m.Pos
}

// A ResourceSet renders its resources once for each of its input sets.
type ResourceSet struct {
	Meta
	Spec ResourceSetSpec
}

// String is how messages name the object: "ResourceSet apps/podinfo".
func (r *ResourceSet) String() string { return KindResourceSet + " " + r.NamespacedName() }

// ResourceSetSpec is the spec of the public CRD ResourceSet.
type ResourceSetSpec struct {
	CommonMetadata     *CommonMetadata
	InputStrategy      string // StrategyFlatten or StrategyPermute; never empty after Parse
	Inputs             []Input
	InputsFrom         []InputProviderReference
	Resources          []any // usually map[string]any; a string when the whole item is a placeholder
	ResourcesTemplate  string
	Steps              []Step
	DependsOn          []Dependency
	ServiceAccountName string
	Wait               bool
}

// A Step is a part of a ResourceSet that is applied after the step before it.
type Step struct {
	Name              string
	Timeout           time.Duration // 0 when not set
	Resources         []any
	ResourcesTemplate string
}

// CommonMetadata is added to every rendered object and wins over the object's own.
type CommonMetadata struct {
	Labels      map[string]string
	Annotations map[string]string
}

// An InputProviderReference selects providers of the ResourceSet's own namespace,
// by name or by labels.
type InputProviderReference struct {
	APIVersion string
	Kind       string
	Name       string
	Selector   *LabelSelector // nil when Name is set
}

// A LabelSelector is the Kubernetes type of that name. An empty one selects all.
type LabelSelector struct {
	MatchLabels      map[string]string
	MatchExpressions []LabelSelectorRequirement
}

// A LabelSelectorRequirement has the operator In, NotIn, Exists or DoesNotExist.
type LabelSelectorRequirement struct {
	Key      string
	Operator string
	Values   []string
}

// A Dependency is an object that must exist before a ResourceSet is applied.
type Dependency struct {
	APIVersion string
	Kind       string
	Name       string
	Namespace  string
	Ready      bool
	ReadyExpr  string
}

// A ResourceSetInputProvider exports input sets that it gets from elsewhere.
type ResourceSetInputProvider struct {
	Meta
	Spec InputProviderSpec
}

// String is how messages name the object: "ResourceSetInputProvider apps/prs".
func (p *ResourceSetInputProvider) String() string {
	return KindInputProvider + " " + p.NamespacedName()
}

// InputProviderSpec is the spec of the public CRD ResourceSetInputProvider.
type InputProviderSpec struct {
	Type               string
	URL                string
	ServiceAccountName string
	SecretRef          string // name of a Secret in the provider's namespace, or empty
	CertSecretRef      string // likewise
	Insecure           bool
	DefaultValues      Input
	Filter             Filter
	Skip               Skip
	Schedule           []Schedule
	Selectors          []ArtifactSelector // ExternalArtifact only
	Revision           string             // GitRepositoryPath only: branch, tag or commit; empty: the default branch. Not in the public CRD
}

// Filter says which of the found items a provider exports. The regular
// expressions are valid RE2 after Parse; empty ones match everything or nothing.
type Filter struct {
	IncludeBranch      string
	ExcludeBranch      string
	IncludeTag         string
	ExcludeTag         string
	IncludeEnvironment string
	ExcludeEnvironment string
	Labels             []string
	Limit              int // DefaultFilterLimit when not set; never 0 after Parse
	Semver             string

	// The public CRD does not have these. All but the paths are about change requests.
	TargetBranch  string        // regular expression
	Title         string        // likewise
	Author        string        // likewise
	Draft         *bool         // nil: both kinds
	Fork          *bool         // likewise, of those that AnnotationAllowForks lets in
	UpdatedWithin time.Duration // 0 when not set
	IncludePath   []string      // globs of GitRepositoryPath
	ExcludePath   []string      // likewise
}

// Skip holds labels that freeze an item at the values exported before. A label
// with a leading "!" freezes items that do not have it.
type Skip struct {
	Labels []string
}

// A Schedule is a window of time in which a provider may be fetched.
type Schedule struct {
	Cron     string
	TimeZone string // "UTC" when not set
	Window   time.Duration
}

// An ArtifactSelector picks ExternalArtifact objects by name or by labels.
type ArtifactSelector struct {
	Namespace string
	Name      string
	LabelSelector
}

// A Receiver is Flux's webhook endpoint: who may call, and what a call refreshes.
type Receiver struct {
	Meta
	Spec ReceiverSpec
}

// String is how messages name the object: "Receiver apps/github-receiver".
func (r *Receiver) String() string { return KindReceiver + " " + r.NamespacedName() }

// ReceiverSpec is the spec of Flux's Receiver, as far as it concerns renderer.
type ReceiverSpec struct {
	Type      string
	Events    []string
	Resources []ReceiverResource
	SecretRef string
	Suspend   bool
}

// A ReceiverResource names what a call refreshes. Name may be "*", narrowed by MatchLabels.
type ReceiverResource struct {
	APIVersion  string
	Kind        string
	Name        string
	Namespace   string // the Receiver's when not set
	MatchLabels map[string]string
}
