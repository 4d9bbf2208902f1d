package incremental

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"gqlstream/graphstore"
)

// shardsMax bounds the shards of a group: each has a mark of its own in the output log.
const shardsMax = 256

// ShardOf returns the shard of a community, from 0 to shards - 1.
func ShardOf(community string, shards int) int {
	if shards <= 1 {
		return 0
	}
	return int(xxhash.Sum64String(community) % uint64(shards))
}

// shardSection names a section of one shard: shard-3-published.arrow.
func shardSection(shard int, name string) string {
	return fmt.Sprintf("%s%d-%s", shardPrefix, shard, name)
}

const shardPrefix = "shard-"

// SectionShard returns the shard of a section of the state, and false for a section of the graph,
// which is equal in all workers of a group.
func SectionShard(name string) (shard int, ok bool) {
	rest, ok := strings.CutPrefix(name, shardPrefix)
	if !ok {
		return 0, false
	}
	text, _, _ := strings.Cut(rest, "-")
	shard, err := strconv.Atoi(text)
	return shard, err == nil
}

// ofCommunity is the community of a row.
type ofCommunity struct{ Community uint32 }

func (r ofCommunity) community() graphstore.Community { return graphstore.Community(r.Community) }

type communityRow interface{ community() graphstore.Community }

// addRows adds, for each shard that the core estimates, a section of the rows of its communities.
func addRows[T communityRow](c *Core, add addSection, name string, copied bool, rows []T) {
	view := c.View()
	byShard := make([][]T, c.shards())
	for i := range rows {
		shard := c.shardOf(rows[i].community(), view)
		byShard[shard] = append(byShard[shard], rows[i])
	}
	for _, shard := range c.ownedShards() {
		add(shardSection(shard, name), copied, rowsOf(byShard[shard]))
	}
}

// ownedRows reads the output of addRows for the shards of this core, by community.
func ownedRows[T communityRow](
	c *Core,
	sections map[string][]byte,
	name string,
) (all []T, err error) {
	view := c.View()
	for _, shard := range c.ownedShards() {
		section := shardSection(shard, name)
		rows, err := readRows[T](sections, section)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			id := rows[i].community()
			if int(id) >= view.Communities() || c.shardOf(id, view) != shard {
				return nil, fmt.Errorf("section %s: community %d is not one of shard "+
					"%d", section, id, shard)
			}
		}
		all = append(all, rows...)
	}
	return all, nil
}
