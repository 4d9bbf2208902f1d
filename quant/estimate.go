package quant

// Estimate is the record that leaves the pipeline. Its JSON form is that of the output
// log and of files. Shares are between 0 and 1 and sum to one; slices have length K.
type Estimate struct {
	Pipeline     string  `json:"pipeline,omitempty"`
	Community    string  `json:"community"`
	Position     uint64  `json:"position"`
	Time         string  `json:"time,omitempty"` // log time, RFC 3339
	Method       string  `json:"method"`
	Preset       string  `json:"preset,omitempty"`
	Kernel       string  `json:"kernel,omitempty"`
	Lambda       float64 `json:"lambda"`
	ModelVersion string  `json:"model_version,omitempty"`
	// version that is being rolled out
	ModelComing string `json:"model_incoming,omitempty"`
	// how much of the version in use it covers
	ModelArrived float64   `json:"model_incoming_coverage,omitempty"`
	Members      float64   `json:"members"`
	Labelled     float64   `json:"labelled"`
	Coverage     float64   `json:"coverage"`   // share of unlabelled members with a prediction
	Prevalence   []float64 `json:"prevalence"` // K
	Low          []float64 `json:"low,omitempty"`
	High         []float64 `json:"high,omitempty"`
	SE           []float64 `json:"se,omitempty"`
	SEChange     []float64 `json:"se_change,omitempty"` // standard error of Moved
	Moved        []float64 `json:"moved,omitempty"`     // since the record before
	// the same, by labels, coefficients or a model version
	Revised   []float64 `json:"revised,omitempty"`
	SERevised []float64 `json:"se_revised,omitempty"` // standard error of Revised
	// by how much the plain count of the members' predictions moved since the record before, and
	// the standard error of that if each of them was as likely to move in the other direction
	Counted   []float64 `json:"counted,omitempty"`
	SECounted []float64 `json:"se_counted,omitempty"`
	// standard error of how far the shares may be behind, a part of SE: members without new
	// evidence may have moved as the others did
	SELag []float64 `json:"se_lag,omitempty"`
	// seconds since a member was observed last, on average; 0: no time is known
	EvidenceAge float64 `json:"evidence_age,omitempty"`
	// mean mass of the members' predictions where these age: 1 if all are of now
	Recent float64 `json:"fresh,omitempty"`
	// median age of the calibration labels with a time, in seconds; 0: none has one
	LabelAge float64 `json:"label_age,omitempty"`
	// auto: how far these labels still describe their vertices, 1 for all
	LabelFreshness float64   `json:"label_freshness,omitempty"`
	NEff           []float64 `json:"n_eff"`
	Confidence     float64   `json:"confidence,omitempty"`   // of the intervals
	Simultaneous   bool      `json:"simultaneous,omitempty"` // the intervals hold together
	Variance       string    `json:"variance,omitempty"`     // VarianceExact or VarianceDiagonal
	// dual when one structure served the kernels of all communities
	Engine string `json:"engine,omitempty"`
	// seconds of log time since something was last learned of the kernel's second moments
	VarianceAge float64 `json:"variance_age,omitempty"`
	// auto: how far the community was selected by class, 0 for a place
	Gamma float64 `json:"gamma,omitempty"`
	// auto: version of the coefficients of the posterior, from 1
	Posterior uint64 `json:"posterior,omitempty"`
	// auto: input of Difference, by coefficient, then class
	Influence   []float64 `json:"influence,omitempty"`
	AuditLabels uint64    `json:"audit_labels,omitempty"` // members with an audit label
	// share of the members that they stand for
	AuditReach float64 `json:"audit_reach,omitempty"`
	// auto: weight of the estimate from them alone
	AuditWeight float64 `json:"audit_weight,omitempty"`
	// auto: their share less that of auto without them, in points, for the class with most errors
	AuditPoints float64 `json:"audit_points,omitempty"`
	// auto: the same in standard errors of the difference
	AuditErrors float64 `json:"audit_errors,omitempty"`
	// bound on the kernel's L1 error; numerical, not statistical
	Certificate float64  `json:"certificate"`
	Flags       []string `json:"flags"`
	Config      string   `json:"config,omitempty"` // digest of the configuration
	Suppressed  bool     `json:"suppressed,omitempty"`
}
