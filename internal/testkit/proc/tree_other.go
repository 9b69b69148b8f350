//go:build unix && !linux

package proc

import (
	"os/exec"
	"strconv"
	"strings"
)

// table reads parent and state of each process.
func table() map[int]entry {
	found := map[int]entry{}
	out, err := exec.Command("ps", "-axo", "pid=,ppid=,state=").Output()
	if err != nil {
		return found
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			continue
		}
		pid, errPID := strconv.Atoi(fields[0])
		parent, errParent := strconv.Atoi(fields[1])
		if errPID == nil && errParent == nil {
			found[pid] = entry{parent: parent, zombie: strings.HasPrefix(fields[2], "Z")}
		}
	}
	return found
}
