// Package container runs PostgreSQL and Kafka in containers, for machines where
// neither server binaries nor Maven are at hand but a Docker engine answers. It
// is the test kit's last resort, for its shared servers only: what runs in a
// container cannot be frozen or killed the way the other servers can.
//
// What is left by a killed owner is removed by testcontainers' own reaper.
package container

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	dockercontainer "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/walpost/walpost/internal/testkit/kafkaserver"
	"github.com/walpost/walpost/internal/testkit/proc"
)

// startTimeout includes the time to pull an image.
const startTimeout = 3 * time.Minute

// newestPostgres is used when the caller takes any version.
const newestPostgres = 18

// Stop ends a container.
type Stop func(context.Context) error

// engine asks whether there is a Docker engine. The library panics on some
// machines that have none.
func engine(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("find a Docker engine: %v", r)
		}
	}()
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return fmt.Errorf("find a Docker engine: %w", err)
	}
	defer provider.Close()
	if err := provider.Health(ctx); err != nil {
		return fmt.Errorf("find a Docker engine: %w", err)
	}
	return nil
}

// Postgres starts postgres:<major>, 0 for the newest, and returns the
// superuser's connection string.
func Postgres(ctx context.Context, major int) (dsn string, stop Stop, err error) {
	if err := engine(ctx); err != nil {
		return "", nil, err
	}
	if major == 0 {
		major = newestPostgres
	}
	const port = "5432/tcp"
	c, err := testcontainers.Run(ctx, "postgres:"+strconv.Itoa(major),
		testcontainers.WithEnv(map[string]string{"POSTGRES_HOST_AUTH_METHOD": "trust"}),
		testcontainers.WithCmd("postgres",
			"-c", "wal_level=logical", "-c", "max_replication_slots=200", "-c", "max_wal_senders=200",
			"-c", "max_connections=300", "-c", "max_prepared_transactions=20", "-c", "fsync=off"),
		testcontainers.WithExposedPorts(port),
		// The image starts the server twice, the first time to initialise it.
		testcontainers.WithWaitStrategy(wait.ForLog("ready to accept connections").
			WithOccurrence(2).WithStartupTimeout(startTimeout)))
	stop = stopper(c)
	if err != nil {
		return "", nil, failed("PostgreSQL", err, stop)
	}
	addr, err := c.PortEndpoint(ctx, port, "")
	if err != nil {
		return "", nil, failed("PostgreSQL", err, stop)
	}
	return "postgres://postgres@" + addr + "/postgres?sslmode=disable", stop, nil
}

// Kafka starts a broker of apache/kafka and returns its address.
func Kafka(ctx context.Context) (addr string, stop Stop, err error) {
	if err := engine(ctx); err != nil {
		return "", nil, err
	}
	// Clients come back to the address that the broker advertises, which has to
	// be known before it starts: so the port is ours to choose.
	reserved, err := proc.ReservePort()
	if err != nil {
		return "", nil, err
	}
	port := strconv.Itoa(reserved.Number)
	addr = net.JoinHostPort("127.0.0.1", port)
	exposed := port + "/tcp"
	c, err := testcontainers.Run(ctx, "apache/kafka:"+kafkaserver.Version,
		testcontainers.WithEnv(map[string]string{
			"KAFKA_NODE_ID":                                  "1",
			"KAFKA_PROCESS_ROLES":                            "broker,controller",
			"KAFKA_CONTROLLER_QUORUM_VOTERS":                 "1@localhost:9093",
			"KAFKA_LISTENERS":                                "PLAINTEXT://:" + port + ",CONTROLLER://:9093",
			"KAFKA_ADVERTISED_LISTENERS":                     "PLAINTEXT://" + addr,
			"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP":           "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
			"KAFKA_CONTROLLER_LISTENER_NAMES":                "CONTROLLER",
			"KAFKA_NUM_PARTITIONS":                           "12",
			"KAFKA_AUTO_CREATE_TOPICS_ENABLE":                "false",
			"KAFKA_LOG_RETENTION_MS":                         "-1", // see package kafkaserver
			"KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR":         "1",
			"KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
			"KAFKA_TRANSACTION_STATE_LOG_MIN_ISR":            "1",
			"KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS":         "0",
		}),
		testcontainers.WithExposedPorts(exposed),
		testcontainers.WithHostConfigModifier(func(host *dockercontainer.HostConfig) {
			host.PortBindings = network.PortMap{network.MustParsePort(exposed): {
				{HostIP: netip.AddrFrom4([4]byte{127, 0, 0, 1}), HostPort: port},
			}}
		}),
		testcontainers.WithWaitStrategy(wait.ForLog("Kafka Server started").WithStartupTimeout(startTimeout)))
	terminate := stopper(c)
	stop = func(ctx context.Context) error {
		defer reserved.Release()
		return terminate(ctx)
	}
	if err != nil {
		return "", nil, failed("Kafka", err, stop)
	}
	return addr, stop, nil
}

// stopper takes the container of a failed start too, which may exist or not.
func stopper(c *testcontainers.DockerContainer) Stop {
	return func(ctx context.Context) error {
		return testcontainers.TerminateContainer(c, testcontainers.StopContext(ctx))
	}
}

func failed(what string, err error, stop Stop) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if stopErr := stop(ctx); stopErr != nil {
		return fmt.Errorf("start a container of %s: %w (and then: %w)", what, err, stopErr)
	}
	return fmt.Errorf("start a container of %s: %w", what, err)
}
