package kafkaserver

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/walpost/walpost/internal/testkit/fetch"
	"github.com/walpost/walpost/internal/testkit/proc"
)

var (
	//go:embed pom.xml
	pom []byte
	//go:embed log4j2.properties
	log4j []byte
)

// NoJavaError says that there is nothing to run Kafka with.
type NoJavaError struct{ Err error }

func (e *NoJavaError) Error() string { return fmt.Sprintf("find Java: %v", e.Err) }

// Unwrap returns the cause.
func (e *NoJavaError) Unwrap() error { return e.Err }

// Hint says what to do about it.
func (e *NoJavaError) Hint() string {
	return "install a Java runtime, 17 or later (java on PATH, or JAVA_HOME), and Maven (mvn on PATH)"
}

// install is what all brokers share: jars, a formatted storage to copy, and an
// archive of loaded classes.
type install struct {
	java     string
	jars     string // folder
	template string // folder, made by makeTemplate
}

// Names in the template's folder.
const (
	storageName = "storage"
	archiveName = "classes.jsa"
	log4jName   = "log4j2.properties"
)

func findInstall(ctx context.Context, log func(string, ...any)) (*install, error) {
	java, err := FindJava()
	if err != nil {
		return nil, err
	}
	version, err := proc.Run(ctx, proc.Self(), proc.Env(), java, "-version")
	if err != nil {
		return nil, &NoJavaError{Err: err}
	}
	cache, err := fetch.Open(proc.Self(), log)
	if err != nil {
		return nil, err
	}
	jars, err := cache.Jars(ctx, "kafka-"+Version, pom)
	if err != nil {
		return nil, err
	}
	in := &install{java: java, jars: jars}
	// A class archive is good for one JVM only.
	name := "kafka-template-" + fetch.Key(pom, log4j, []byte(version), []byte(User+Password))
	in.template, err = cache.Once(ctx, name, func(dir string) error {
		return in.makeTemplate(ctx, dir, log)
	})
	if err != nil {
		return nil, err
	}
	return in, nil
}

// FindJava returns the java program, or a NoJavaError.
func FindJava() (string, error) {
	name := "java"
	if home := os.Getenv("JAVA_HOME"); home != "" {
		name = filepath.Join(home, "bin", "java")
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", &NoJavaError{Err: err}
	}
	return path, nil
}

// makeTemplate lets Kafka's own tool format a storage, and starts a broker once
// to archive the classes that it loads.
func (in *install) makeTemplate(ctx context.Context, dir string, log func(string, ...any)) error {
	log("preparing Kafka %s (once)", Version)
	if err := os.WriteFile(filepath.Join(dir, log4jName), log4j, 0o644); err != nil {
		return err
	}
	// The tool needs a complete configuration, of which only log.dirs matters.
	config := filepath.Join(dir, "format.properties")
	err := os.WriteFile(config, []byte("process.roles=broker,controller\n"+
		"node.id=1\n"+
		"controller.quorum.voters=1@127.0.0.1:9093\n"+
		"listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093\n"+
		"controller.listener.names=CONTROLLER\n"+
		"log.dirs="+filepath.Join(dir, storageName)+"\n"), 0o600)
	if err != nil {
		return err
	}
	cluster, err := newID()
	if err != nil {
		return err
	}
	making := &install{java: in.java, jars: in.jars, template: dir}
	credential := fmt.Sprintf("=[name=%s,password=%s]", User, Password)
	args := append(making.jvm(Options{}), "kafka.tools.StorageTool", "format", "-t", cluster, "-c", config,
		"--add-scram", "SCRAM-SHA-256"+credential, "--add-scram", "SCRAM-SHA-512"+credential)
	if _, err := proc.Run(ctx, proc.Self(), proc.Env(), in.java, args...); err != nil {
		return fmt.Errorf("format a storage: %w", err)
	}
	// Without an archive brokers start too, only later.
	if err := making.archive(ctx); err != nil {
		log("cannot archive Kafka's classes, it will start slowly: %v", err)
	}
	return nil
}

func (in *install) archive(ctx context.Context) error {
	file := filepath.Join(in.template, archiveName)
	partial := file + ".partial"
	c, err := start(ctx, Options{Brokers: 1, SASL: true, TLS: true, Log: func(string, ...any) {}}, in,
		[]string{"-XX:ArchiveClassesAtExit=" + partial})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := errors.Join(c.Term(ctx, 0), c.Close()); err != nil {
		return err
	}
	return os.Rename(partial, file)
}

// jvm returns the options of a JVM up to the class path.
func (in *install) jvm(opts Options) []string {
	args := []string{
		"-XX:-UsePerfData", // leaves files in the temporary directory
		"-XX:+ExitOnOutOfMemoryError",
		"-Dlog4j2.configurationFile=" + filepath.Join(in.template, log4jName),
		"-cp", filepath.Join(in.jars, "*"),
	}
	if file := filepath.Join(in.template, archiveName); exists(file) {
		args = append(args, "-XX:SharedArchiveFile="+file)
	}
	switch {
	case opts.Throughput:
		return append(args, "-Xms256m", "-Xmx1g", "-XX:+UseG1GC")
	case opts.Brokers > 1:
		args = append(args, "-Xms64m", "-Xmx384m")
	default:
		args = append(args, "-Xms64m", "-Xmx512m")
	}
	return append(args, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// format makes the storage of a broker: a copy of the formatted one with the
// three identities replaced.
func (in *install) format(dir, cluster string, node int) error {
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(in.template, storageName))); err != nil {
		return fmt.Errorf("copy the formatted storage: %w", err)
	}
	directory, err := newID()
	if err != nil {
		return err
	}
	ids := map[string]string{
		"cluster.id":   cluster,
		"directory.id": directory,
		"node.id":      fmt.Sprint(node),
	}
	file := filepath.Join(dir, "meta.properties")
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	lines := strings.Split(string(content), "\n")
	replaced := 0
	for i, line := range lines {
		name, _, _ := strings.Cut(line, "=")
		if id, ok := ids[name]; ok {
			lines[i] = name + "=" + id
			replaced++
		}
	}
	if replaced != len(ids) {
		return fmt.Errorf("%s has not the lines that were expected: %q", file, content)
	}
	return os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644)
}

// newID returns an identity in Kafka's form: 16 bytes in base64. The tools would
// take a leading dash for an option.
func newID() (string, error) {
	for {
		var id [16]byte
		if _, err := rand.Read(id[:]); err != nil {
			return "", err
		}
		if text := base64.RawURLEncoding.EncodeToString(id[:]); text[0] != '-' {
			return text, nil
		}
	}
}
