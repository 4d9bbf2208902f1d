package incremental

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"gqlstream/graphstore"
	"gqlstream/incremental/tally"
)

// shardsMax bounds the shards of a group: each has a mark of its own in the log out.
const shardsMax = 256

// ShardOf returns the shard, of so many, that a community belongs to.
func ShardOf(community string, shards int) int {
	if shards <= 1 {
		return 0
	}
	return int(xxhash.Sum64String(community) % uint64(shards))
}

// shardOf returns the shard of a community.
func (c *Core) shardOf(id graphstore.Community, view graphstore.View) int {
	return ShardOf(view.CommunityName(id), c.shards())
}

func (c *Core) shards() int { return max(c.config.Shards, 1) }

// owns reports whether this core estimates a community.
func (c *Core) owns(id graphstore.Community, view graphstore.View) bool {
	return c.config.Owned == nil || slices.Contains(c.config.Owned, c.shardOf(id, view))
}

// ownedShards lists the shards that this core estimates, in order; never nil, which is all.
func (c *Core) ownedShards() []int {
	list := []int{}
	for shard := range c.shards() {
		if c.config.Owned == nil || slices.Contains(c.config.Owned, shard) {
			list = append(list, shard)
		}
	}
	return list
}

// Disown ends the estimating of a shard, which another worker has taken over, and forgets
// what only its estimates need. The core cannot take it back; see Restore.
func (c *Core) Disown(shard int) {
	c.config.Owned = slices.DeleteFunc(c.ownedShards(), func(s int) bool { return s == shard })
	if !c.warm() {
		return
	}
	view := c.View()
	for id := range graphstore.Community(view.Communities()) {
		if c.shardOf(id, view) != shard {
			continue
		}
		c.tallies.SetSpread(id, nil)
		c.tallies.SetProgress(id, tally.Progress{})
		if int(id) < len(c.published) {
			c.published[id] = publication{}
		}
		if own, are := c.masses.(*fields); are && int(id) < len(own.each) {
			own.each[id] = kernel{}
		}
	}
}

// disown drops from a list of communities that moved those of other shards. Nobody reads
// what they came to.
func (c *Core) disown(moved []graphstore.Community, view graphstore.View) []graphstore.Community {
	if c.config.Owned == nil {
		return moved
	}
	return slices.DeleteFunc(moved, func(id graphstore.Community) bool {
		if c.owns(id, view) {
			return false
		}
		c.tallies.SetProgress(id, tally.Progress{})
		return true
	})
}

// shardSection names a section of one shard: shard-3-published.arrow.
func shardSection(shard int, name string) string {
	return fmt.Sprintf("%s%d-%s", shardPrefix, shard, name)
}

const shardPrefix = "shard-"

// SectionShard returns the shard of which a section of the state is, and false where it is
// of the graph, which all workers of a group have alike.
func SectionShard(name string) (shard int, ok bool) {
	rest, ok := strings.CutPrefix(name, shardPrefix)
	if !ok {
		return 0, false
	}
	text, _, _ := strings.Cut(rest, "-")
	shard, err := strconv.Atoi(text)
	return shard, err == nil
}

// ofCommunity says of which community a row is.
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

// ownedRows reads what addRows wrote of the shards that this core estimates, by community.
func ownedRows[T communityRow](c *Core, sections map[string][]byte, name string) (all []T, err error) {
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
				return nil, fmt.Errorf("section %s: community %d is not one of shard %d", section, id, shard)
			}
		}
		all = append(all, rows...)
	}
	return all, nil
}
