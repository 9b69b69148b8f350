# syntax=docker/dockerfile:1

# The compiler runs on the builder's own platform and cross-compiles: emulation
# would only be slower.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG TARGETOS TARGETARCH
ARG VERSION= REVISION=
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags "-s -w -X main.version=$VERSION -X main.revision=$REVISION" \
    -o /out/walpost ./cmd/walpost

# Nothing but the binary and the certificate authorities: no shell, no home, no
# file that a user id would have to own, so any id does (OpenShift gives random
# ones). Times are UTC, so there is no time zone database.
FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /src/LICENSE /LICENSE
COPY --from=build /out/walpost /walpost
WORKDIR /
USER 65532:65532
# Probes and metrics.
EXPOSE 8642
ENTRYPOINT ["/walpost"]
CMD ["run"]
