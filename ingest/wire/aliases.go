package wire

import (
	"strings"

	"gqlstream/ingest/event"
)

// aliases are the names of columns in other programs, in the form of PlainName: Gephi, igraph,
// networkx, SNAP, KONECT, 4CAT, Communalytic and twarc; then those of spreadsheets in German,
// French, Spanish, Portuguese, Italian and Dutch, and of Bluesky. They are used if no column has
// one of our names; the first in this order wins.
var aliases = map[field][]string{
	fieldSrc: {
		"source", "from", "fromnodeid", "fromid", "sourceid", "node1", "user1", "fromuser",
		"sourceuser", "follower", "sender", "tail", "u", "v1", "id1",
		"quelle", "von", "origen", "origem", "origine", "bron", "van", "did", "authordid",
	},
	fieldDst: {
		"target", "to", "tonodeid", "toid", "targetid", "destination", "node2", "user2", "touser",
		"targetuser", "followee", "followed", "receiver", "recipient", "head", "v", "v2", "id2",
		"ziel", "nach", "an", "cible", "destino", "destinazione", "doel", "naar",
		blueskyParent, "commitrecordsubjecturi", "commitrecordsubject", blueskyViewParent,
	},
	fieldVertex: {
		"node", "nodeid", "vertexid", "userid", "authorid", "accountid", "user", "author",
		"account", "username", "screenname", "name",
		"knoten", "konto", "noeud", "nœud", "compte", "nodo", "nó", "cuenta", "conta", "knoop",
		"did",
	},
	fieldClass: {
		"category", "stance", "annotation", "goldlabel", "gold", "truelabel",
		"klasse", "kategorie", "classe", "clase", "categoría", "categoria", "catégorie",
	},
	fieldCommunity: {
		"group", "cluster", "modularityclass", "communityid", "groupid", "clusterid", "module",
	},
	fieldWeight:  {"gewicht", "poids", "peso"},
	fieldTime:    {"timestamp", "timeus", "commitrecordcreatedat"},
	fieldVersion: {"modelname"},

	// Of posts. Names and numbers of accounts are in the same order for all three fields, so that
	// answers and reposts name authors in the same way as the author column does.
	fieldAuthor: {
		"accountid", "senderid", "fromid", "did", "authordid", "authorusername", "username",
		"userscreenname", "screenname", "account", "sender", "authorname", "from",
	},
	fieldID: {"tweetid", "statusid", "messageid", "postid", "idstr", "uri"},
	fieldReplyTo: {
		"inreplytouserid", "replytouserid", "repliedtouserid", "inreplytoaccountid",
		"replytoauthorid", "replieduser", "inreplytousername", "inreplytoscreenname", "replytouser",
		"replytoauthor", "parentauthor", blueskyParent, blueskyViewParent,
	},
	fieldRepostOf: {
		"retweeteduserid", "retweetuserid", "reblogaccountid", "authorforwardedfromid", "fwdfromid",
		"retweeteduser", "retweetedusername", "retweetuserscreenname", "retweetedauthor",
		"authorforwardedfromusername", "repostofauthor",
	},
}

// activityTimes are the names of the times of posts and edges; those without a time zone come last.
// A table of people with labels or predictions may have the time at which an account was created.
var activityTimes = []string{
	"unixtimestamp", "dateunixtime", "createdutc", "createdat", "parsedcreatedat", "publishedat",
	"postedat", "timestamp", "datetime", "timestamputc", "date",
	"timeus", "commitrecordcreatedat", "recordcreatedat", "indexedat",
}

// The address of the post that a post of Bluesky answers, in frames of Jetstream and in views of
// posts, such as a search returns.
const (
	blueskyParent     = "commitrecordreplyparenturi"
	blueskyViewParent = "recordreplyparenturi"
)

// HasAddresses reports whether the values of a column are addresses of records, or accounts.
func HasAddresses(name string) bool {
	return IsAlternative(name) || PlainName(name) == blueskyViewParent
}

// IsAlternative reports whether a column fills its field beside others, because each row has one of
// them: frames of Bluesky's Jetstream name the other account in a place for each kind of record.
func IsAlternative(name string) bool {
	switch PlainName(name) {
	case blueskyParent, "commitrecordsubjecturi", "commitrecordsubject":
		return true
	}
	return false
}

// AccountOf returns the account in the address of a record, as in at://did:plc:abc/COLLECTION/KEY,
// or the text itself if it is no such address.
func AccountOf(text string) string {
	account, is := strings.CutPrefix(text, "at://")
	if account, _, _ = strings.Cut(account, "/"); is && strings.HasPrefix(account, "did:") {
		return account
	}
	return text
}

// aliasesOf are the aliases of a field of a kind.
func aliasesOf(kind event.Kind, f field) []string {
	if f == fieldTime && (kind == event.KindPost || kind == event.KindEdge) {
		return activityTimes
	}
	return aliases[f]
}

// PlainName returns the name of a column in small letters, without spaces, dashes, dots and
// underlines.
func PlainName(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" _-.", r) {
			return -1
		}
		return r
	}, strings.ToLower(name))
}
