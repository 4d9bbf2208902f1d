package pipeline

import (
	"fmt"
	"io"
	"strings"

	"gqlstream/config"
	"gqlstream/graphstore"
	"gqlstream/ingest/broker"
)

func greet(w io.Writer, p *Pipeline) {
	begins := "from the beginning of the log"
	if at := p.Position(); at > 0 {
		begins = fmt.Sprintf("from the checkpoint at position %d", at)
	}
	fmt.Fprintf(w, "gqlstream %s\n", p.version)
	fmt.Fprintf(w, "  reads      stream %s at %s\n", p.names.In.Log, p.Broker.Where)
	fmt.Fprintf(w, "  state      %s, %s\n", p.settings.State, begins)
	fmt.Fprintf(w, "  classes    %s\n", strings.Join(p.settings.Classes, ", "))
	fmt.Fprintf(w, "  tracks     %s\n", tracked(p.Config.Communities))
	fmt.Fprintf(w, "  publishes  stream %s, bucket %s%s\n", p.names.Out.Estimates, p.names.Out.Latest, p.settings.Output.AlsoTo())
	if url := p.Page.URL(); url != "" {
		fmt.Fprintf(w, "  page       %s\n", url)
	}
	fmt.Fprintf(w, "  refuses to stream %s (%s)\n", p.names.In.Quarantine, quarantineCommand(p.settings, p.Broker))
}

func quarantineCommand(settings config.Settings, b *broker.Broker) string {
	url := settings.NATS.URL
	if url == "" {
		url = b.Embedded.URL()
	}
	switch {
	case url == "":
		return "gqlstream quarantine list --state " + settings.State + ", when this has ended"
	case strings.Contains(url, "@"): // with a password
		url = "URL"
	}
	return "gqlstream quarantine list --nats " + url
}

func tracked(rules []graphstore.Rule) (text string) {
	for _, rule := range rules {
		text += rule.Name + ", "
	}
	if text != "" {
		text += "and "
	}
	return text + "communities named in member events"
}
