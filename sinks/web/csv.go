package web

import (
	"encoding/csv"
	"iter"
	"net/http"
	"strconv"

	"gqlstream/quant"
)

// formats are the choices of the parameter format; the first is the default.
var formats = []string{"json", "csv"}

var csvHead = []string{"time", "community", "class", "share", "low", "high", "method"}

// table is an answer that has rows too.
type table interface{ rows() iter.Seq[row] }

// row is one estimate or roll-up; lists have an item for each class, or none.
type row struct {
	time, community, method string
	share, low, high        []float64
}

// writeCSV writes a line for each class of each row.
func writeCSV(w http.ResponseWriter, classes []string, t table) {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8; header=present")
	out := csv.NewWriter(w)
	_ = out.Write(csvHead)
	for r := range t.rows() {
		for k := range r.share {
			_ = out.Write([]string{r.time, r.community, classes[k], at(r.share, k), at(r.low, k), at(r.high, k), r.method})
		}
	}
	out.Flush() // an error means that the client has gone
}

// estimateRows yields the rows of a list of estimates.
func estimateRows(list iter.Seq[quant.Estimate]) iter.Seq[row] {
	return func(yield func(row) bool) {
		for e := range list {
			if !yield(row{e.Time, e.Community, e.Method, e.Prevalence, e.Low, e.High}) {
				return
			}
		}
	}
}

// at returns item k as text; "" where an estimate has no interval.
func at(list []float64, k int) string {
	if k >= len(list) {
		return ""
	}
	return strconv.FormatFloat(list[k], 'g', -1, 64)
}
