# The image of gqlstream: a static binary, the certificates of public authorities, and nothing
# else. State is in /state. Build it with: make image
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=devel
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w -X main.stampedVersion=$VERSION" \
    -o /gqlstream ./cmd/gqlstream
RUN mkdir /state

FROM scratch
ARG VERSION=devel
ARG REVISION=unknown
LABEL org.opencontainers.image.title="gqlstream" \
      org.opencontainers.image.description="Shares of opinions in communities of a changing graph" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /gqlstream /gqlstream
COPY --from=build --chown=65532:65532 /state /state
USER 65532:65532
# Checkpoints, and the log itself without an outside server. Without a volume it ends with the
# container.
VOLUME /state
EXPOSE 8090
# Asks the page of /etc/gqlstream/gqlstream.yaml, or of 127.0.0.1:8090.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["/gqlstream", "health"]
ENTRYPOINT ["/gqlstream"]
CMD ["--help"]
