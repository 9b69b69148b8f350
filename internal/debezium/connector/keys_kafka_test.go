package connector

import "testing"

func TestProducer(t *testing.T) {
	t.Parallel()
	const p = "producer.override."
	tls := map[string]string{p + "security.protocol": "SSL"}
	pem := map[string]string{p + "security.protocol": "SSL", p + "ssl.truststore.type": "PEM", p + "ssl.keystore.type": "PEM", p + "ssl.keystore.location": "/k.pem"}
	scram := map[string]string{
		p + "security.protocol": "SASL_SSL", p + "sasl.mechanism": "SCRAM-SHA-256",
		p + "sasl.jaas.config": `x.ScramLoginModule required username="u" password="p";`,
	}
	testDecisions(t, []decided{
		{p + "bootstrap.servers", "a:1,SSL://b:2", Honoured, SeveritySame, "", nil},
		{p + "compression.type", "zstd", Honoured, SeveritySame, "", nil},
		{p + "compression.type", "rar", Refused, SeverityRefused, "", nil},
		{p + "acks", "all", Ignored, SeveritySame, "", nil},
		{p + "acks", "1", Ignored, SeverityNote, "all in-sync", nil},
		{p + "acks", "2", Refused, SeverityRefused, "", nil},
		{p + "linger.ms", "5", Ignored, SeverityNote, "", nil},
		{p + "batch.size", "5", Ignored, SeverityNote, "", nil},
		{p + "client.id", "x", Honoured, SeveritySame, "", nil},
		{p + "request.timeout.ms", "5000", Honoured, SeveritySame, "", nil},
		{p + "interceptor.classes", "x.Y", Refused, SeverityRefused, "", nil},
		{p + "partitioner.class", "org.apache.kafka.clients.producer.RoundRobinPartitioner", Refused, SeverityRefused, "", nil},
		{p + "partitioner.ignore.keys", "true", Refused, SeverityRefused, "order", nil},
		{p + "transactional.id", "x", Refused, SeverityRefused, "", nil},
		{p + "key.serializer", serializerString, Refused, SeverityRefused, "", nil},
		{p + "key.serializer", serializerBytes, Ignored, SeveritySame, "", nil},
		{p + "compresion.type", "lz4", Refused, SeverityRefused, `did you mean "producer.override.compression.type"?`, nil},
		{p + "security.protocol", "SSL", Honoured, SeveritySame, "", nil},
		{p + "security.protocol", "TLS", Refused, SeverityRefused, "SASL_SSL", nil},
		{p + "security.protocol", "SASL_SSL", Refused, SeverityRefused, "GSSAPI", nil},
		{p + "security.protocol", "SASL_SSL", Refused, SeverityRefused, "sasl.jaas.config", map[string]string{p + "sasl.mechanism": "PLAIN"}},
		{p + "security.protocol", "SASL_PLAINTEXT", Honoured, SeverityNote, "in the clear", map[string]string{
			p + "sasl.mechanism": "PLAIN", p + "sasl.jaas.config": `x.PlainLoginModule required username="u" password="p";`,
		}},
		{p + "sasl.mechanism", "GSSAPI", Refused, SeverityRefused, "SCRAM", scram},
		{p + "sasl.mechanism", "PLAIN", Ignored, SeverityNote, "without SASL", nil},
		{p + "sasl.jaas.config", `x.ScramLoginModule required username="u" password="p";`, Honoured, SeveritySame, "", scram},
		{p + "sasl.jaas.config", `x.PlainLoginModule required username="u" password="p";`, Refused, SeverityRefused, "ScramLoginModule", scram},
		{p + "sasl.jaas.config", `x.ScramLoginModule required username="u";`, Refused, SeverityRefused, "no password", scram},
		{p + "sasl.jaas.config", `nonsense`, Refused, SeverityRefused, "login module", scram},
		{p + "sasl.login.callback.handler.class", "x", Refused, SeverityRefused, "", nil},
		{p + "sasl.kerberos.service.name", "kafka", Ignored, SeverityNote, "", nil},
		{p + "ssl.truststore.location", "/t.jks", Refused, SeverityRefused, "keytool -list -rfc -keystore /t.jks", tls},
		{p + "ssl.truststore.location", "/t.pem", Honoured, SeveritySame, "", pem},
		{p + "ssl.truststore.location", "/t.jks", Ignored, SeverityNote, "without TLS", nil},
		{p + "ssl.keystore.location", "/k.jks", Refused, SeverityRefused, "keytool -importkeystore", tls},
		{p + "ssl.keystore.location", "/k.pem", Honoured, SeveritySame, "", pem},
		{p + "ssl.key.password", "p", Refused, SeverityRefused, "openssl pkcs8", pem},
		{p + "ssl.truststore.certificates", "-----BEGIN", Refused, SeverityRefused, "file", tls},
		{p + "ssl.endpoint.identification.algorithm", "", Ignored, SeverityDiffers, "server_name", tls},
		{p + "ssl.endpoint.identification.algorithm", "https", Honoured, SeveritySame, "", tls},
		{p + "ssl.protocol", "TLSv1.3", Ignored, SeverityNote, "", tls},
		{topicCreation + "replication.factor", absent, Honoured, SeverityNote, "makes a missing topic", nil},
		{topicCreation + "replication.factor", "3", Honoured, SeveritySame, "", nil},
		{topicCreation + "partitions", "0", Refused, SeverityRefused, "", nil},
		{topicCreation + "cleanup.policy", "compact", Honoured, SeveritySame, "", nil},
	})
}

func TestConverters(t *testing.T) {
	t.Parallel()
	const v = "value.converter"
	json := map[string]string{v: classJSON}
	binary := map[string]string{v: classBinary, "value.converter.delegate.converter.type": classJSON}
	testDecisions(t, []decided{
		{v, "StringConverter", Honoured, SeveritySame, "", nil},
		{v, "Json", Honoured, SeveritySame, "JsonConverter", nil},
		{v, classBytes, Honoured, SeveritySame, "", nil},
		{v, classBinary, Honoured, SeveritySame, "", nil},
		{v, classSimple, Refused, SeverityRefused, "headers alone", nil},
		{v, "ByteArrayConverter", Refused, SeverityRefused, classBytes, nil},
		{v, "io.debezium.converters.ByteArrayConverter", Refused, SeverityRefused, classBinary, nil},
		{v, "io.confluent.connect.avro.AvroConverter", Refused, SeverityRefused, "registries", nil},
		{v, "io.confluent.connect.protobuf.ProtobufConverter", Refused, SeverityRefused, "registries", nil},
		{v, "io.confluent.connect.json.JsonSchemaConverter", Refused, SeverityRefused, "registries", nil},
		{v, "io.debezium.converters.CloudEventsConverter", Refused, SeverityRefused, "registries", nil},
		{v, "io.apicurio.registry.utils.converter.ExtJsonConverter", Refused, SeverityRefused, "registries", nil},
		{v, "org.apache.kafka.connect.converters.LongConverter", Refused, SeverityRefused, "does not have", nil},
		{v, absent, Refused, SeverityRefused, "not guessed", nil},
		{"key.converter", absent, Refused, SeverityRefused, "name the worker's file", nil},
		{"header.converter", absent, Honoured, SeveritySame, "Simple", nil},
		{"header.converter", classBytes, Refused, SeverityRefused, "context headers", nil},
		{"header.converter", classBytes, Honoured, SeveritySame, "", map[string]string{"extended.headers.enabled": "false"}},
		{v + ".schemas.enable", "false", Honoured, SeveritySame, "", json},
		{v + ".schemas.enable", "0", Refused, SeverityRefused, "", json},
		{v + ".decimal.format", "numeric", Honoured, SeveritySame, "", json},
		{v + ".decimal.format", "hex", Refused, SeverityRefused, "", json},
		{v + ".replace.null.with.default", "false", Honoured, SeveritySame, "", json},
		{v + ".schemas.cache.size", "10", Ignored, SeverityNote, "", json},
		{v + ".schema.enable", "false", Refused, SeverityRefused, "without a word", json},
		{v + ".schemas.enable", "false", Ignored, SeverityNote, "no such option", nil},
		{v + ".schemas.enable", "false", Ignored, SeverityNote, "not set beside it", map[string]string{v: absent}},
		{v + ".converter.encoding", "UTF8", Honoured, SeveritySame, "", nil},
		{v + ".converter.encoding", "ISO-8859-1", Refused, SeverityRefused, "", nil},
		{v + ".delegate.converter.type", classJSON, Honoured, SeveritySame, "", binary},
		{v + ".delegate.converter.type", classBinary, Refused, SeverityRefused, "", binary},
		{v + ".delegate.converter.type.schemas.enable", "false", Honoured, SeveritySame, "", binary},
		{v + ".delegate.schemas.enable", "false", Ignored, SeverityNote, "alone", binary},
	})
}
