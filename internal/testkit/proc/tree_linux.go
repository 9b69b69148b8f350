package proc

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// table reads parent and state of each process.
func table() map[int]entry {
	found := map[int]entry{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it ended meanwhile
		}
		// pid (command) state ppid …; the command may hold spaces and parentheses.
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		end := bytes.LastIndexByte(stat, ')')
		if err != nil || end < 0 {
			continue
		}
		fields := bytes.Fields(stat[end+1:])
		if len(fields) < 2 {
			continue
		}
		parent, err := strconv.Atoi(string(fields[1]))
		if err != nil {
			continue
		}
		found[pid] = entry{parent: parent, zombie: fields[0][0] == 'Z'}
	}
	return found
}
