package main

import "github.com/alecthomas/kong"

// flagHelp has help texts that are too long for the tag of a flag's field.
var flagHelp = kong.Vars{
	"ask_community":    "The community to label members of (repeatable).",
	"ask_target_width": "Draw enough vertices that no interval is wider than X to either side.",
	"ask_confidence":   "Confidence of the intervals.",
	"ask_seed":         "The same state and seed draw the same vertices.",
	"ask_out":          "File for the vertices; - is standard output.",
	"ask_publish": "Also publish the vertices to the stream GQL_ASK (nats.prefix in place of " +
		"GQL) for a labelling tool.",
	"check_elsewhere":   "Skip the test of secrets and certificates, which are on another machine.",
	"communities_edges": "Edges: src,dst[,weight][,time][,op][,ttl].",
	"communities_log":   "Logs of all kinds of events; the graph at their end counts.",
	"communities_out": "File of members to write, by its extension csv or parquet; - is " +
		"standard output. It appears whole or not at all.",
	"communities_min_size": "Least number of members. Smaller communities are omitted and " +
		"counted. run publishes no estimate of fewer than 11.",
	"communities_resolution": "A value above 1 makes more and smaller communities, below 1 " +
		"fewer and larger ones.",
	"communities_seed":   "Same seed, edges and options, same communities.",
	"communities_prefix": "Prefix of the names; a number follows, the largest community first.",
	"demo_http":          "Address of the page with charts; off for none.",
	"estimate_format":    "table for reading, json for one object a line.",
	"settings_config":    "Configuration (YAML); see gqlstream check --help.",
	"eval_format":        "markdown, or json with every estimate and its truth.",
	"evaluate_plots":     "Write pictures of error and coverage (PNG, SVG) to this directory.",
	"evaluate_by_time": "Read the files as a log with times, predict each label before it is " +
		"read, and report by period.",
	"evaluate_period": "With --by-time: length of a period. By default a week, or less in a log " +
		"of less than four weeks.",
	"explain_from": "The earlier place. A time is RFC 3339, as in the records. [the estimate " +
		"before --to]",
	"explain_named": "Name the N largest single changes of each cause with at most 64 changes; " +
		"0 names none.",
	"file_edges":  "Edges: src,dst[,weight][,time][,op][,ttl].",
	"file_labels": "Labels: vertex,label[,role][,time][,ttl].",
	"file_predictions": "Predictions: vertex,p_left,p_right,... or vertex,p0,p1,... or " +
		"vertex,class.",
	"file_posts": "Posts: author,p_left,p_right,...[,time][,reply_to][,repost_of][,id]; or " +
		"author,class.",
	"file_members":  "Members: community,vertex[,weight][,time][,op].",
	"file_vertices": "Vertices: vertex, and a column for each attribute.",
	"file_log":      "Logs of all kinds of events, in the format of gqlstream simulate.",
	"reading_map": "Names of your columns: --map src=follower,dst=followee. --map time= reads " +
		"no time.",
	"reading_columns": "Columns of files without a header, in order: --columns src,dst, or " +
		"edges=src,dst for one kind. An empty name skips a column. (repeatable)",
	"reading_timezone": "Time zone of times without a zone, such as Europe/Berlin or UTC. " +
		"Without this flag such times are refused.",
	"reading_null_words": "Read NA, null, None, NaN and similar words as text. Otherwise they " +
		"are missing values.",
	"reading_edges_sum": "Add the weights of repeated edges. Otherwise the last weight stands.",
	"refused_max_refused": "Accept up to N refused rows, or P percent. By default one refused " +
		"row is an error.",
	"refused_skip_refused": "Accept any number of refused rows, unless all rows of a file are " +
		"refused.",
	"health_config": "Configuration of the run with the address of its page. " +
		"[/etc/gqlstream/gqlstream.yaml, if it exists]",
	"cli_run":      "Follow the stream and keep the estimates of every community current.",
	"cli_watch":    "Show the communities of a running pipeline in the terminal.",
	"cli_ask":      "Draw members of a community to label, and promise the resulting interval.",
	"cli_evaluate": "Test all methods and their intervals on your own labelled graph.",
	"cli_replay":   "Compute the estimates of a log again, from a stream or files.",
	"cli_explain":  "Explain the change of an estimate between two places of the log.",
	"cli_demo":     "Show truth, plain count and estimate, live, on a simulated network.",
	"cli_simulate": "Simulate a social network with known truth, into a file or a stream.",
	"cli_purge":    "Delete the beginning of the log that no checkpoint needs.",
	"cli_backup":   "Copy the log, the published records and the state to a directory.",
	"cli_scrub":    "Read all stored data and report damaged and missing parts.",
	"cli_notify":   "Send a sample alert to the targets of a configuration.",
	"cli_mcp":      "Answer a language model's questions about a running pipeline.",
	"cli_version":  "Print the version, the Go release and the event schema version.",
	"scrub_fill": "Compute missing records again, from the log or a checkpoint, and store " +
		"them.",
	"notify_test": "Send one sample alert to every webhook and Alertmanager, and print each " +
		"answer.",
	"publish_classes": "Names of the classes in order, or their number. By default from the " +
		"configuration, the published estimates or the files.",
	"publish_producer": "Name of this producer. The broker drops files that the same producer " +
		"publishes again within two minutes.",
	"publish_note": "Publish this note, a line in every chart, after the files or " +
		"without files.",
	"publish_clock": "Set log time to the broker's clock, after a leap of that clock. Publish " +
		"this once the clock is right again.",
	"publish_rejects": "Write the refused rows to this file, as lines of JSON.",
	"entry_reason":    "Only entries with this reason, such as self-loop.",
	"entry_kind":      "Only entries of this kind of event, or unknown.",
	"retry_reason":    "All entries with this reason that were not retried.",
	"retry_file":      "Publish this instead of the original; for one entry.",
	"retry_kind":      "Publish as this kind of event.",
	"replay_to":       "End after this place. A time is RFC 3339, as in the records.",
	"replay_use_checkpoint": "Begin at the newest checkpoint (up to --from POSITION), not at " +
		"the beginning of the log.",
	"replay_alerts": "Evaluate the alert rules of the configuration and print the alerts in " +
		"place of the estimates.",
	"when": "Print a digest of the state on standard error, after every step, emission " +
		"or checkpoint.",
	"restore_dir": "Backup that gqlstream backup made.",
	"run_listen": "Address of the embedded server for producers on this host, such as " +
		"127.0.0.1:4222.",
	"run_output":  "Write the estimates as JSON lines to this file; - is standard output.",
	"run_parquet": "Write the estimates as Parquet files to this directory.",
	"run_http":    "Address of the page, the API and the metrics; off for none. [127.0.0.1:8090]",
	"run_graph_of": "Answer another question about the graph of the pipeline with this prefix, " +
		"such as gql: the new log (--prefix) copies its edges, vertices and members, and has " +
		"labels, predictions and posts of its own.",
	"run_group": "Share the communities with the other workers of this group, on one NATS " +
		"server or cluster (--nats).",
	"run_worker": "Name of this worker in its group. [from the host and the state directory]",
	"run_skip": "Skip this message, or all of FIRST-LAST, in every run and replay. The decision " +
		"is recorded in the log. Use it if one message makes every start fail, or if the broker " +
		"has lost some.",
	"run_accept_log": "Accept a log that differs from the one that was read. Records beyond its " +
		"end stay stored and are ignored.",
	"run_accept_new_config": "Accept a state directory of another configuration: read and " +
		"publish the whole log again.",
	"run_exit_when_drained": "End after all present messages of the stream are applied and " +
		"published.",
	"server_config": "Configuration (YAML) of the pipeline with its server, prefix, credentials " +
		"and certificates.",
	"server_state": "State directory of the pipeline: checkpoints and, without --nats, the " +
		"embedded stream, which no other process may use.",
	"server_nats": "Address of the NATS server, such as a run with --listen. [NATS_URL, unless " +
		"--state or --config decide]",
	"server_context": "Use the NATS server of this context of the command nats.",
	"server_prefix": "Prefix of the pipeline's streams and subjects, nats.prefix of its " +
		"configuration. [gql]",
	"server_credentials": "NATS credentials file, with --nats.",
	"simulate_out": "Write the events to this file: .ndjson, .ndjson.gz or .ndjson.zst; - is " +
		"standard output.",
	"simulate_rate": "With --nats, greatest number of events a second; 0 is the rate of the " +
		"server.",
	"simulate_truth": "Write the true prevalences to this CSV file.",
	"simulate_answers": "Write the final class of every vertex to this CSV file, as answers to " +
		"gqlstream ask.",
	"simulate_truth_every": "Simulated time between two rows of truth of a community.",
	"snapshot_list":        "List the checkpoints of a state directory and verify each.",
	"snapshot_state":       "State directory of gqlstream run.",
	"snapshot_export_table": "edges, vertices, adjacency, attributes, communities, members, " +
		"versions, expiry, pending, audits or meta.",
	"snapshot_export_out": "File to write, by its extension parquet, csv, or gexf for the whole " +
		"graph in Gephi; it appears whole or not at all.",
	"watch_url":        "Address of the page of a running pipeline.",
	"watch_token_file": "Access token, where the page asks for one.",
	"watch_sort":       "name, members, share, width, coverage, certificate, flags or updated.",
}
