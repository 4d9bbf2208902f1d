package simulate

// FlagHelp has help texts that are too long for the tag of a flag's field, by the name
// that the tag gives it.
var FlagHelp = map[string]string{
	"simulate_vertices": "Vertices at the end; four in five are there from the start.",
	"simulate_activity": "Edges made or dropped a simulated second; posts and labels come on top.",
	"simulate_duration": "Simulated time; 0 never ends (with --nats), and arrivals spread over " +
		"an hour.",
	"simulate_start": "When simulated time starts (RFC 3339). By default 2026-01-01, or now " +
		"with --nats.",
	"simulate_drift":      "Amplitude of the smooth drift of a class, in log odds.",
	"simulate_jump_every": "At its multiples a quarter of the communities jump; 0 is never.",
	"simulate_jump_size":  "Share of a community that a jump moves to another opinion.",
	"simulate_label_share": "Share of the vertices that are asked for their opinion once, soon " +
		"after they arrive.",
	"simulate_label_rate": "Further vertices asked a simulated second, drawn from all.",
	"simulate_label_renew": "Share of the labelled vertices' changes of mind that are reported " +
		"as a new label at once; with 1 every label is always true.",
	"simulate_accuracy": "Accuracy of the classifier: one number, or one for each class.",
	"simulate_post_rate": "Posts a simulated second; each makes a prediction of its author. " +
		"Active vertices post more.",
	"simulate_posts": "Write posts, some with replies, in place of predictions and edges.",
	"simulate_degrade_share": "Share of the vertices with an additional, confident error from " +
		"then on.",
}
