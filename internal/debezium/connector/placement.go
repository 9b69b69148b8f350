package connector

import (
	"slices"
	"strings"
)

// placed is one entry of table.fields.additional.placement.
type placed struct{ column, where, alias string }

const placementWay = "write column:placement or column:placement:alias, with commas between; a placement is header, envelope or partition"

// parsePlacement reads the list as the router does: parts are trimmed, and Java
// leaves out what is empty at the end.
func parsePlacement(text string) (list []placed, fault string) {
	entries := javaSplit(text, ",")
	if len(entries) == 0 {
		return nil, "the list is empty, which the router does not take"
	}
	for _, entry := range entries {
		parts := javaSplit(entry, ":")
		if len(parts) < 2 || len(parts) > 3 {
			return nil, quoted(strings.TrimSpace(entry)) + " is neither a pair nor a trio"
		}
		p := placed{column: strings.TrimSpace(parts[0]), where: strings.ToLower(strings.TrimSpace(parts[1]))}
		p.alias = p.column
		if len(parts) == 3 {
			p.alias = strings.TrimSpace(parts[2])
		}
		if p.column == "" || p.alias == "" {
			return nil, quoted(strings.TrimSpace(entry)) + " names no column"
		}
		if !slices.Contains([]string{"header", "envelope", "partition"}, p.where) {
			return nil, "unknown placement " + quoted(strings.TrimSpace(parts[1])) + ": Debezium starts, and fails at every row"
		}
		list = append(list, p)
	}
	fields := []string{"payload"}
	for _, p := range list {
		if p.where != "envelope" {
			continue
		}
		if slices.Contains(fields, p.alias) {
			return nil, "the envelope would have two fields " + quoted(p.alias) + ": Debezium starts, and fails at every row"
		}
		fields = append(fields, p.alias)
	}
	return list, ""
}

// javaSplit is String.split, which drops empty parts at the end. Splitting
// nothing gives one empty part.
func javaSplit(text, separator string) []string {
	if text == "" {
		return []string{""}
	}
	parts := strings.Split(text, separator)
	for len(parts) > 0 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	return parts
}

func decidePlacement(r *reading, s *setting) verdict {
	list, fault := parsePlacement(s.value)
	if fault != "" {
		return refused(fault, placementWay)
	}
	r.spec.Router.Placement, r.spec.Router.HasPlacement = s.value, true
	envelope := slices.ContainsFunc(list, func(p placed) bool { return p.where == "envelope" })
	if envelope {
		if bad := r.debugText("an envelope"); bad != nil {
			return *bad
		}
	}
	if r.server && slices.ContainsFunc(list, func(p placed) bool { return p.where == "partition" }) {
		return noted("columns as headers and envelope fields; the placement partition has no effect, as with Debezium Server", "")
	}
	return same("columns as headers, envelope fields and partition")
}

// usedColumns are those that the router reads.
func (r *reading) usedColumns() []string {
	columns := []string{}
	add := func(name string) {
		if name != "" && !slices.Contains(columns, name) {
			columns = append(columns, name)
		}
	}
	if r.alias == "" {
		return columns
	}
	add(r.routerValue("table.field.event.id", "id"))
	add(r.routerValue("table.field.event.key", "aggregateid"))
	add(r.routerValue("table.field.event.payload", "payload"))
	add(r.routerValue("route.by.field", "aggregatetype"))
	add(r.routerValue("table.field.event.timestamp", ""))
	add(r.routerValue("table.field.event.schema.version", ""))
	list, _ := parsePlacement(r.routerValue("table.fields.additional.placement", ""))
	for _, p := range list {
		add(p.column)
	}
	return columns
}
