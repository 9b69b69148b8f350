package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/walpost/walpost/internal/cli"
)

// version and revision are set by the linker (-X main.version=…) where the
// build has no version control to ask. Nothing else writes them.
var version, revision string

type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Modified bool   `json:"modified"` // built from a tree with uncommitted changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print version, revision and Go version",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			info, _ := debug.ReadBuildInfo()
			v := newVersionInfo(info, version, revision)
			if a.json() {
				return cli.WriteJSON(a.stdout, v)
			}
			_, err := fmt.Fprintln(a.stdout, v)
			return err
		},
	}
}

// newVersionInfo asks the build information for what the linker did not set.
// info may be nil.
func newVersionInfo(info *debug.BuildInfo, version, revision string) versionInfo {
	v := versionInfo{Version: version, Revision: revision}
	if info != nil {
		v.Go = info.GoVersion
		if v.Version == "" && info.Main.Version != "(devel)" {
			v.Version = info.Main.Version
		}
		settings := map[string]string{}
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
		if v.Revision == "" {
			v.Revision = settings["vcs.revision"]
			v.Modified = settings["vcs.modified"] == "true"
		}
		if settings["GOOS"] != "" {
			v.Platform = settings["GOOS"] + "/" + settings["GOARCH"]
		}
	}
	if v.Version == "" {
		v.Version = "devel"
	}
	return v
}

func (v versionInfo) String() string {
	s := "walpost " + v.Version
	if v.Revision != "" {
		s += ", revision " + v.Revision
		if v.Modified {
			s += " with changes"
		}
	}
	return s + ", " + v.Go + " " + v.Platform
}
