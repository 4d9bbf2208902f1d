package config

// FlagHelp maps the names in the tags of fields to help texts that are too long for a tag.
var FlagHelp = map[string]string{
	"results_classes":    "Names of the classes in order, or their number.",
	"results_community":  "Track the vertices whose attribute KEY is VALUE (repeatable).",
	"results_method":     "Estimates to publish, a comma list or all. [auto]",
	"results_preset":     "Scaling of the weights: density, reference, paper. [density]",
	"results_lambda":     "Share of the kernel in the weights, 0 to 1, or auto. [0.9]",
	"results_classifier": "diffusion: predict from labels and edges, where no prediction is given.",
	"half_life":          "Age at which a label counts half, such as 720h. [never]",
	"results_kernel": "ppr, truncated, lazy, shortest-path, features (of --vertices) or " +
		"constant. [ppr]",
}
