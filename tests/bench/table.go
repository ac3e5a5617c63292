package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// table writes rows of cells as Markdown.
func table(w io.Writer, title string, cells [][]string) {
	if len(cells) < 2 {
		return
	}
	fmt.Fprintf(w, "\n### %s\n\n", title)
	for i, row := range cells {
		fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintf(w, "|%s\n", strings.Repeat("---|", len(row)))
		}
	}
}

func find(rows []*row, name string) *row {
	if i := slices.IndexFunc(rows, func(w *row) bool { return w.Name == name }); i >= 0 {
		return rows[i]
	}
	return nil
}

// writeTables writes what was measured in rounds.
func writeTables(w io.Writer, rows []*row) {
	closed := [][]string{{
		"variant", "requests/s", "× `reverse_proxy`", "× `respond`", "CPU µs/request", "× baseline",
		"core busy %", "p50 ms", "× baseline", "p99 ms", "× baseline", "Redis CPU µs/request",
	}}
	opened := [][]string{{"variant", "p50 ms", "added p50 ms", "p99 ms", "added p99 ms"}}
	for _, x := range rows {
		if x.Open {
			opened = append(opened, openRow(rows, x))
		} else {
			closed = append(closed, closedRow(rows, x))
		}
	}
	table(w, "As many requests as are answered", closed)
	table(w, "At a fixed rate", opened)
	writeNotes(w, rows)
}

func closedRow(rows []*row, x *row) []string {
	cells := []string{x.Title}
	if x.Note != "" {
		return append(cells, slices.Repeat([]string{"–"}, 10)...)
	}
	base, respond := find(rows, x.Base), find(rows, plainRespond)
	if !x.duplicate && x.Name != plainRespond {
		respond = nil
	}
	cells = append(cells,
		x.each(throughput).median("%.0f"),
		x.against(find(rows, x.Proxy), throughput, ratio).text("%.2f"),
		x.against(respond, throughput, ratio).text("%.2f"))
	cells = append(cells, x.each(cpu("server")).median("%.0f"), x.against(base, cpu("server"), ratio).text("%.2f"), x.each(busy).median("%.0f"))
	cells = append(cells, x.each(p50).median("%.2f"), x.against(base, p50, ratio).text("%.2f"))
	cells = append(cells, x.each(p99).median("%.2f"), x.against(base, p99, ratio).text("%.2f"))
	return append(cells, x.each(cpu("redis")).median("%.1f"))
}

func openRow(rows []*row, x *row) []string {
	base := find(rows, x.Base)
	return []string{
		x.Title,
		x.each(p50).median("%.3f"), x.against(base, p50, difference).text("%+.3f"),
		x.each(p99).median("%.2f"), x.against(base, p99, difference).text("%+.2f"),
	}
}

// writeNotes says what is missing, and what went wrong.
func writeNotes(w io.Writer, rows []*row) {
	var notes []string
	for _, x := range rows {
		if x.Note != "" {
			notes = append(notes, fmt.Sprintf("%s: not measured, %s", x.Title, x.Note))
		}
		for round, run := range x.Runs {
			if run.Wrong > 0 {
				notes = append(notes, fmt.Sprintf("**%s, round %d: %d answers beside %d good ones were wrong**, the first: %s",
					x.Name, round+1, run.Wrong, run.Requests, run.FirstWrong))
			}
		}
	}
	for _, note := range notes {
		fmt.Fprintf(w, "\n- %s\n", note)
	}
}
