package wire

import "gqlstream/ingest/event"

// fields holds the fields of each kind in the order in which the encoders write
// them. In tables, "probabilities" may also be the columns p0 to p{K-1}, and
// "attributes" stands for every column that is not one of the others.
var fields = [event.Kinds][]fieldSpec{
	event.KindEdge: {
		{
			fieldOp, "op", "", nil, false, &choiceType, edgeOps,
			func(b *event.Batch, i int) any { return &b.Edges[i].Remove },
		},
		{
			fieldSrc, "src", "", nil, true, &idType, nil,
			func(b *event.Batch, i int) any { return &b.Edges[i].Src },
		},
		{
			fieldDst, "dst", "", nil, true, &idType, nil,
			func(b *event.Batch, i int) any { return &b.Edges[i].Dst },
		},
		{
			fieldWeight, "weight", "", nil, false, &numberType, nil,
			func(b *event.Batch, i int) any { return &b.Edges[i].Weight },
		},
		{
			fieldTTL, "ttl", "", nil, false, &ttlType, nil,
			func(b *event.Batch, i int) any { return &b.Edges[i].TTL },
		},
		{
			fieldTime, "time", "", timeColumns, false, &timeType, nil,
			func(b *event.Batch, i int) any { return &b.Edges[i].Time },
		},
	},
	event.KindLabel: {
		{
			fieldVertex, "vertex", "", vertexColumns, true, &idType, nil,
			func(b *event.Batch, i int) any { return &b.Labels[i].Vertex },
		},
		{
			fieldClass, "class", "label", labelColumns, true, &classType, nil,
			func(b *event.Batch, i int) any { return &b.Labels[i].Class },
		},
		{
			fieldRole, "role", "", nil, false, &wordType, roles,
			func(b *event.Batch, i int) any { return &b.Labels[i].Role },
		},
		{
			fieldPi, "pi", "", nil, false, &numberType, nil,
			func(b *event.Batch, i int) any { return (*share)(&b.Labels[i].Pi) },
		},
		{
			fieldTTL, "ttl", "", nil, false, &ttlType, nil,
			func(b *event.Batch, i int) any { return &b.Labels[i].TTL },
		},
		{
			fieldTime, "time", "", timeColumns, false, &timeType, nil,
			func(b *event.Batch, i int) any { return &b.Labels[i].Time },
		},
	},
	event.KindPrediction: {
		{
			fieldVertex, "vertex", "", vertexColumns, true, &idType, nil,
			func(b *event.Batch, i int) any { return &b.Predictions[i].Vertex },
		},
		{
			fieldProbabilities, "probabilities", "p", nil, false, &unitsType, nil,
			func(b *event.Batch, i int) any { return &b.Predictions[i].Units },
		},
		{
			fieldClass, "class", "", nil, false, &classType, nil,
			func(*event.Batch, int) any { return nil },
		},
		{
			fieldVersion, "version", "model", versionColumns, false, &nameType, nil,
			func(b *event.Batch, i int) any { return &b.Predictions[i].Version },
		},
		{
			fieldTTL, "ttl", "", nil, false, &ttlType, nil,
			func(b *event.Batch, i int) any { return &b.Predictions[i].TTL },
		},
		{
			fieldTime, "time", "", timeColumns, false, &timeType, nil,
			func(b *event.Batch, i int) any { return &b.Predictions[i].Time },
		},
	},
	event.KindPost: {
		{
			fieldAuthor, "author", "", authorColumns, true, &idType, nil,
			func(b *event.Batch, i int) any { return &b.Posts[i].Author },
		},
		{
			fieldProbabilities, "probabilities", "p", nil, false, &unitsType, nil,
			func(b *event.Batch, i int) any { return &b.Posts[i].Units },
		},
		{
			fieldClass, "class", "", nil, false, &classType, nil,
			func(*event.Batch, int) any { return nil },
		},
		{
			fieldVersion, "version", "model", versionColumns, false, &nameType, nil,
			func(b *event.Batch, i int) any { return &b.Posts[i].Version },
		},
		{
			fieldID, "id", "", postIDColumns, false, &nameType, nil,
			func(b *event.Batch, i int) any { return &b.Posts[i].ID },
		},
		{
			fieldReplyTo, "reply_to", "", replyColumns, false, &idType, nil,
			func(b *event.Batch, i int) any { return &b.Posts[i].ReplyTo },
		},
		{
			fieldRepostOf, "repost_of", "", repostColumns, false, &idType, nil,
			func(b *event.Batch, i int) any { return &b.Posts[i].RepostOf },
		},
		{
			fieldWeight, "weight", "", nil, false, &numberType, nil,
			func(b *event.Batch, i int) any { return &b.Posts[i].Weight },
		},
		{
			fieldTTL, "ttl", "", nil, false, &ttlType, nil,
			func(b *event.Batch, i int) any { return &b.Posts[i].TTL },
		},
		{
			fieldTime, "time", "", timeColumns, false, &timeType, nil,
			func(b *event.Batch, i int) any { return &b.Posts[i].Time },
		},
	},
	event.KindMember: {
		{
			fieldOp, "op", "", nil, false, &choiceType, memberOps,
			func(b *event.Batch, i int) any { return (*leaving)(&b.Members[i].Multiplicity) },
		},
		{
			fieldCommunity, "community", "", nil, true, &nameType, nil,
			func(b *event.Batch, i int) any { return &b.Members[i].Community },
		},
		{
			fieldVertex, "vertex", "", vertexColumns, true, &idType, nil,
			func(b *event.Batch, i int) any { return &b.Members[i].Vertex },
		},
		{
			fieldMultiplicity, "multiplicity", "weight", nil, false, &countType, nil,
			func(b *event.Batch, i int) any { return &b.Members[i].Multiplicity },
		},
		{
			fieldTime, "time", "", timeColumns, false, &timeType, nil,
			func(b *event.Batch, i int) any { return &b.Members[i].Time },
		},
	},
	event.KindVertex: {
		{
			fieldVertex, "vertex", "id", vertexColumns, true, &idType, nil,
			func(b *event.Batch, i int) any { return &b.Vertices[i].Vertex },
		},
		{
			fieldAttributes, "attributes", "", nil, false, &attributesType, nil,
			func(b *event.Batch, i int) any { return &b.Vertices[i].Attributes },
		},
		{
			fieldErase, "erase", "", nil, false, &flagType, flags,
			func(b *event.Batch, i int) any { return &b.Vertices[i].Erase },
		},
		{
			fieldTime, "time", "", timeColumns, false, &timeType, nil,
			func(b *event.Batch, i int) any { return &b.Vertices[i].Time },
		},
	},
	event.KindControl: {
		{
			fieldOp, "op", "", nil, true, &wordType, controlOps,
			func(b *event.Batch, i int) any { return &b.Controls[i].Op },
		},
		{
			fieldConfig, "config", "", nil, false, &configType, nil,
			func(b *event.Batch, i int) any { return &b.Controls[i].Config },
		},
		{
			fieldText, "text", "", nil, false, &nameType, nil,
			func(b *event.Batch, i int) any { return &b.Controls[i].Text },
		},
		{
			fieldTime, "time", "", timeColumns, false, &timeType, nil,
			func(b *event.Batch, i int) any { return &b.Controls[i].Time },
		},
	},
}
