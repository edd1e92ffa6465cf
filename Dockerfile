# syntax=docker/dockerfile:1
# docker build -t REPOSITORY/drainplan-controller:TAG .
# `make image-check` builds the same programs without a container engine and runs this file's last stage from a directory.

FROM rust:1.95.0-slim-bookworm AS build
# The image's own toolchain; rust-toolchain.toml names the same with components that a build does not need.
ENV RUSTUP_TOOLCHAIN=1.95.0
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    e2e/static-build /out

FROM scratch
COPY --from=build /out/drainplan-controller /drainplan-controller
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/drainplan-controller"]
