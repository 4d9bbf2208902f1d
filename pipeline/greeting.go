package pipeline

import (
	"fmt"
	"io"
	"strings"
)

// greet says what is read, where state is and where estimates go.
func (p *Pipeline) greet(w io.Writer) {
	fmt.Fprintf(w, "gqlstream %s\n", p.version)
	fmt.Fprintf(w, "  reads      stream %s at %s\n", p.names.In.Log, p.Broker.Where)
	fmt.Fprintf(w, "  state      %s, %s\n", p.settings.State, p.begins())
	fmt.Fprintf(w, "  classes    %s\n", strings.Join(p.settings.Classes, ", "))
	fmt.Fprintf(w, "  tracks     %s\n", p.tracked())
	fmt.Fprintf(w, "  publishes  stream %s, bucket %s%s\n", p.names.Out.Estimates, p.names.Out.Latest, p.settings.Output.AlsoTo())
	if url := p.Page.URL(); url != "" {
		fmt.Fprintf(w, "  page       %s\n", url)
	}
	fmt.Fprintf(w, "  refuses to stream %s (%s)\n", p.names.In.Quarantine, p.quarantineCommand())
}

// quarantineCommand is how to look at what was refused.
func (p *Pipeline) quarantineCommand() string {
	const command = "gqlstream quarantine list"
	switch url := p.settings.NATS.URL; {
	case strings.Contains(url, "@"): // with a password
		return command + " --nats URL"
	case url != "":
		return command + " --nats " + url
	case p.Broker.Embedded.URL() != "":
		return command + " --nats " + p.Broker.Embedded.URL()
	}
	return command + " --state " + p.settings.State + ", when this has ended"
}

// begins says where in the log the run begins.
func (p *Pipeline) begins() string {
	if at := p.Core.Position(); at > 0 {
		return fmt.Sprintf("from the checkpoint at position %d", at)
	}
	return "from the beginning of the log"
}

func (p *Pipeline) tracked() string {
	if len(p.Config.Communities) == 0 {
		return "communities named in member events"
	}
	var list []string
	for _, rule := range p.Config.Communities {
		list = append(list, rule.Name)
	}
	return strings.Join(list, ", ") + ", and communities named in member events"
}
