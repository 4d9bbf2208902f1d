package event

// Evidence summarises the observations behind a prediction from events. A plain prediction is one
// observation, and each post is one. The prediction is their mean, each weighted by 2^((t -
// 1970)/half-life) where t is its own time. These weights do not change as time passes, so nothing
// is recomputed: forward decay (Cormode, Shkapenyuk, Srivastava and Xu, ICDE 2009). Single
// observations are not stored.
type Evidence struct {
	Weight  uint32 // sum of the weights, in units of 2^(Epoch - 14)
	Epoch   int64  // half-lives from 1970 to the newest observation, or more
	Time    Time   // own time of the newest observation
	Changed Time   // log time of the last observation

	// Observations counts the different predictions and the posts of the model version in use. A
	// later plain prediction usually summarises more words of its author than the first one did.
	Observations uint32
}

// Reference names a vertex, or none.
type Reference struct {
	ID    ID
	Given bool // false: the ID is the zero ID and means nothing
}
