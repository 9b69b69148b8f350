package contract

// example is a command line that follows docs/contract.md. The oracle runs it as
//
//	RUN write N START
//	RUN consume N
//
// with DATABASE_URL, KAFKA_BROKERS, TOPIC and CONSUMER in the environment, and
// for some of the consumers CRASH_AFTER; see doc.go.
type example struct {
	name string
	// needs are programs that have to be on PATH. Without one of them the example
	// is skipped. A program that is there has to work: nothing else is excused.
	needs []string
	// dir is the example's folder, from the root of the repository. It is copied
	// to the cache of the test kit, under a name made of its content, and install
	// runs there, once. In install, run and env {home} is that copy.
	dir     string
	install [][]string
	run     []string
	env     []string
	// writeOnly is for an example that has no consumer of its own.
	writeOnly bool
}

// examples are all that the oracle runs. An installation is renamed when it is
// complete, so nothing in it may hold its own path: no Python venv, but "pip
// install --target {home}/packages" and PYTHONPATH={home}/packages.
var examples = []example{
	{
		name:    "Go",
		needs:   []string{"go"},
		install: nil, // the test builds test/contract/goexample itself
	},
	{
		name:    "Java JDBC",
		needs:   []string{"java", "javac", "mvn"},
		dir:     "docs/examples/java",
		install: [][]string{{"mvn", "-q", "-B", "compile"}},
		run:     []string{"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", "{home}/target/classes:{home}/target/lib/*", "example.jdbc.JdbcExample"},
	},
	{
		name:      "Java Spring JdbcTemplate",
		needs:     []string{"java", "javac", "mvn"},
		dir:       "docs/examples/java",
		install:   [][]string{{"mvn", "-q", "-B", "compile"}},
		run:       []string{"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", "{home}/target/classes:{home}/target/lib/*", "example.template.JdbcTemplateExample"},
		writeOnly: true,
	},
	{
		name:      "Java JPA",
		needs:     []string{"java", "javac", "mvn"},
		dir:       "docs/examples/java",
		install:   [][]string{{"mvn", "-q", "-B", "compile"}},
		run:       []string{"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", "{home}/target/classes:{home}/target/lib/*", "example.jpa.JpaExample"},
		writeOnly: true,
	},
	{
		name:    "Python psycopg",
		needs:   []string{"python3", "pip3"},
		dir:     "docs/examples/python",
		install: pipInstall,
		run:     []string{"python3", "{home}/psycopg_example.py"},
		env:     []string{"PYTHONPATH={home}/packages"},
	},
	{
		name:      "Python SQLAlchemy",
		needs:     []string{"python3", "pip3"},
		dir:       "docs/examples/python",
		install:   pipInstall,
		run:       []string{"python3", "{home}/sqlalchemy_example.py"},
		env:       []string{"PYTHONPATH={home}/packages"},
		writeOnly: true,
	},
	{
		name:    "Node.js",
		needs:   []string{"node", "npm"},
		dir:     "docs/examples/node",
		install: [][]string{{"npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"}},
		run:     []string{"node", "{home}/example.js"},
	},
}

// pipInstall takes wheels only: nothing is built.
var pipInstall = [][]string{{"python3", "-m", "pip", "install", "-q", "--only-binary", ":all:", "--target", "{home}/packages", "-r", "requirements.txt"}}
