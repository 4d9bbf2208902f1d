FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=devel
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w -X main.stampedVersion=$VERSION" -o /gqlstream ./cmd/gqlstream
RUN mkdir /state

FROM scratch
COPY --from=build /gqlstream /gqlstream
COPY --from=build --chown=65532:65532 /state /state
USER 65532:65532
VOLUME /state
ENTRYPOINT ["/gqlstream"]
CMD ["--help"]
